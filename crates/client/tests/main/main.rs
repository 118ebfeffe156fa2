//! Tests of the client against a tiny server that says what it is told to say.

mod server;
mod wire;
