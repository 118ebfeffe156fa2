//! Tests of the metadata tree through its public face.

mod acl;
mod attributes;
mod commands;
mod console;
mod expiration;
mod resolve;
mod restore;
mod storm;
mod transactions;
mod twin;
mod walk;
