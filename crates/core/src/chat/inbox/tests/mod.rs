mod asking;
mod crashes;
mod gate;
mod model;
mod taking;
mod world;
