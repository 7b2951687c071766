//! A real SurrealDB server for the tests of the external database: the `surreal` command line.
//!
//! It exits when its standard input is closed, so it never outlives the test that started it.

use std::io::Read;
use std::process::ExitCode;

use surrealdb_server::core::CommunityComposer;

fn main() -> ExitCode {
    std::thread::spawn(|| {
        std::io::stdin().read_to_end(&mut Vec::new()).ok();
        std::process::exit(0);
    });
    surrealdb_server::init(CommunityComposer())
}
