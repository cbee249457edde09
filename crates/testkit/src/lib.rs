//! What tests need and the product does not.
