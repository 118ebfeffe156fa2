//! Compiles the node protocol; only for the feature `grpc`, and without an installed protoc.

fn main() {
    println!("cargo:rerun-if-changed=proto/node.proto");
    #[cfg(feature = "grpc")]
    compile();
}

#[cfg(feature = "grpc")]
fn compile() {
    let files = protox::compile(["node.proto"], ["proto"]).expect("proto/node.proto compiles");
    // Without `connect` of the client, which would collide with the method of that name.
    tonic_prost_build::configure()
        .build_transport(false)
        .bytes(".millpond.node.v1.Chunk.data")
        .bytes(".millpond.node.v1.TextChunk.data")
        .bytes(".millpond.node.v1.RowsChunk.data")
        .compile_fds(files)
        .expect("code for proto/node.proto can be generated");
}
