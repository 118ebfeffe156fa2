//! Vector hierarchical fair share with strong and integral guarantees.
