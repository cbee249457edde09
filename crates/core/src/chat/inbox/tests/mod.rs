mod asking;
mod back;
mod crashes;
mod gate;
mod missing;
mod model;
mod taking;
mod world;
