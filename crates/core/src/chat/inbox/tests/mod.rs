mod asking;
mod crashes;
mod gate;
mod missing;
mod model;
mod taking;
mod world;
