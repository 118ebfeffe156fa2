//! The server process: kernel thread, store, listeners.
