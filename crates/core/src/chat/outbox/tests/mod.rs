mod crashes;
mod joined;
mod limits_and_age;
mod model;
mod seat;
mod sends;
mod world;
