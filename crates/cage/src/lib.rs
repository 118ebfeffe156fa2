//! Cgroups, namespaces, processes: the only crate with unsafe code.
