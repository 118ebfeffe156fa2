//! The node protocol: plain messages and their protobuf form.
