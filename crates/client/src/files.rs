//! Commands about files (http-api.md 8.3).

use std::io::{Read, Write};

use yson::map;

use crate::{Client, ClientError};

/// Options of `write_file`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteFileOptions {
    /// Add to what is there instead of replacing it.
    pub append: bool,
    /// Keep the digest as `@md5`.
    pub compute_md5: bool,
}

impl Client {
    /// `write_file`: the file must exist, see [`Client::create`]. Sent as it is read.
    pub fn write_file(
        &self,
        path: &str,
        content: &mut dyn Read,
        options: WriteFileOptions,
    ) -> Result<(), ClientError> {
        let path = match options.append {
            true => yson::Value::from(path).with_attributes(map! {"append" => true}),
            false => path.into(),
        };
        let parameters = map! {"path" => path, "compute_md5" => options.compute_md5};
        self.upload("write_file", parameters, content).map(drop)
    }

    /// `read_file`; gives the number of bytes.
    pub fn read_file(&self, path: &str, output: &mut dyn Write) -> Result<u64, ClientError> {
        self.download("read_file", map! {"path" => path}, output)
    }
}
