//! What a container has a storage device do, on a device of its own: tried where the kernel counts that for groups.

use super::conformance::{FREE, for_each_with_groups, until};
use std::process::Command;

const MEBIBYTE: i64 = 1 << 20;

/// A loop device over a file, let go of when dropped.
struct Device {
    path: String,
    _file: tempfile::NamedTempFile,
}

fn losetup(arguments: &[&str]) -> Result<String, String> {
    let done = Command::new("losetup").args(arguments).output().map_err(|e| format!("losetup: {e}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if done.status.success() { Ok(text(&done.stdout)) } else { Err(text(&done.stderr)) }
}

impl Device {
    fn new() -> Result<Device, String> {
        let file = tempfile::NamedTempFile::new().map_err(|e| e.to_string())?;
        file.as_file().set_len(8 << 20).map_err(|e| e.to_string())?;
        let path = losetup(&["-f"])?;
        losetup(&[&path, &file.path().to_string_lossy()])?;
        Ok(Device { path, _file: file })
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = losetup(&["-d", &self.path]);
    }
}

#[test]
fn bytes_and_requests_are_counted() {
    for_each_with_groups(|w| {
        let driver = w.environment.driver();
        let (id, mut container) = w.container(FREE);
        if container.block_io().is_none() {
            return println!("SKIPPED storage of {driver}: nobody counts it here");
        }
        let device = match Device::new() {
            Ok(device) => device,
            Err(e) => return println!("SKIPPED storage of {driver}: no loop device: {e}"),
        };
        let path = &device.path;
        let script = format!(
            "dd if={path} of=/dev/null bs=64k count=16 && dd if=/dev/zero of={path} bs=64k count=16 conv=fsync; \
             exec sleep 1000"
        );
        w.run(id, container.as_mut(), &script);
        until("a mebibyte was read, and one written", || {
            let io = container.block_io().expect("counted before");
            io.bytes_read >= MEBIBYTE && io.bytes_written >= MEBIBYTE && io.reads > 0 && io.writes > 0
        });
        // The device is busy until its user is dead.
        container.kill_all(super::conformance::PATIENCE).expect("killed");
    });
}
