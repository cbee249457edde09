//! What people write to the bot: who may, and how it reaches their agent, through drops, crashes and hand-over. Nothing is
//! acted on before it is stored, nothing is taken twice, and what may have been delivered is not delivered again unseen.
//!
//! [`Inbox`] is one holder's whole machine, made from what the seat's store has. A message is `stored → delivering → done`;
//! each binding has one serial queue. Parts: `gate` says who may, `pairing` how the first person comes in, `record` what is
//! durable, `arrivals` is the way from the service into the store, `places` where else something may have been missed, `deliveries`
//! the way to the agent.

mod arrivals;
mod deliveries;
mod gate;
mod io;
mod machine;
mod pairing;
mod places;
mod record;
#[cfg(test)]
mod tests;

pub use gate::{Access, Adapter, Binding, Refusal, Rule};
pub use io::{
    Attempt, Back, Command, InboxView, Input, Missed, Output, Prepared, QueueView, Thread, Told, Undelivered,
};
pub use machine::Inbox;
pub use record::{Change, Message, Standing, Stored};
