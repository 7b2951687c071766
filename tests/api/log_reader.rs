//! Nobody waits for whoever reads the log.

use crate::helpers::run;
use crate::process::{Service, hosted};

/// Lines of about 180 bytes that fill a pipe of 64 KiB more than twice.
const REQUESTS: usize = 1_000;

#[test]
fn a_reader_of_the_log_that_stalls_holds_up_no_request_and_no_stop() {
    let dir = tempfile::tempdir().unwrap();
    let mut service = Service::start_unread(hosted(dir.path()));
    run(async {
        let admin = service.admin().await;
        for number in 0..REQUESTS {
            admin
                .get(&format!("/api/nodes/{number}"))
                .await
                .refused(404)
                .await;
        }
        service.terminate();
        assert_eq!(service.ended().await.code(), Some(0));
    });
}
