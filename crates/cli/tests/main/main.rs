//! The command line from outside: what parses, what is said about itself, how answers look.

mod args;
mod help;
mod run;
mod top;
mod units;
mod views;
