//! The store under attack of numbers.
