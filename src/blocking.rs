//! Blocking tasks with a watchdog: a task that never ends would otherwise hold a core and a thread unnoticed.
//!
//! A task that runs longer than [`LIMIT`] is counted in `blocking_tasks_slow_total`, is included in
//! `blocking_tasks_overdue` until it ends, and is logged by its name: the function that started it, never the data it
//! works on.

use std::any::type_name;
use std::time::{Duration, Instant};

use metrics::{counter, gauge};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tracing::{Instrument, Span};

/// Heavy work takes a second or two; a task that exceeds this has most likely gone wrong.
const LIMIT: Duration = Duration::from_secs(10);

/// Runs work on a blocking thread, named after the function it is part of. Needs a tokio runtime.
pub fn spawn<T, W>(work: W) -> JoinHandle<T>
where
    T: Send + 'static,
    W: FnOnce() -> T + Send + 'static,
{
    spawn_as(name_of::<W>(), work)
}

/// Like [`spawn`], under a given name, for work passed in by another function (see [`name_of`]).
pub fn spawn_as<T: Send + 'static>(
    task: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    spawn_watched(&Handle::current(), task, LIMIT, work)
}

/// Like [`spawn_as`], on a given runtime.
pub fn spawn_as_on<T: Send + 'static>(
    runtime: &Handle,
    task: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    spawn_watched(runtime, task, LIMIT, work)
}

/// Like [`spawn`], on a given runtime.
pub fn spawn_on<T, W>(runtime: &Handle, work: W) -> JoinHandle<T>
where
    T: Send + 'static,
    W: FnOnce() -> T + Send + 'static,
{
    spawn_watched(runtime, name_of::<W>(), LIMIT, work)
}

/// The function that a closure is part of, as a path inside this crate: `actors::extractor::…::read`.
pub fn name_of<W>() -> &'static str {
    path_in_crate(type_name::<W>())
}

fn path_in_crate(type_name: &'static str) -> &'static str {
    let path = type_name.trim_start_matches('<');
    let path = path.split(['<', '>', ' ', '{']).next().unwrap_or(path);
    let path = path.trim_end_matches(':');
    path.split_once("::").map_or(path, |(_, inside)| inside)
}

fn spawn_watched<T: Send + 'static>(
    runtime: &Handle,
    task: &'static str,
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let span = Span::current();
    let watcher = runtime.clone();
    runtime.spawn_blocking(move || {
        // Dropped at the end, even if the work panics.
        let (_running, ended) = oneshot::channel();
        watcher.spawn(watch(task, limit, ended).instrument(span.clone()));
        span.in_scope(work)
    })
}

/// Reports a task that exceeds the limit, and its end.
async fn watch(task: &'static str, limit: Duration, mut ended: oneshot::Receiver<()>) {
    let since = Instant::now();
    if tokio::time::timeout(limit, &mut ended).await.is_ok() {
        return;
    }
    counter!("blocking_tasks_slow_total", "task" => task).increment(1);
    gauge!("blocking_tasks_overdue").increment(1.0);
    tracing::warn!(
        task,
        limit_ms = limit.as_millis() as u64,
        "a blocking task runs for longer than it should, and keeps a core while it does"
    );
    ended.await.ok();
    gauge!("blocking_tasks_overdue").decrement(1.0);
    let seconds = since.elapsed().as_secs_f64();
    tracing::warn!(task, seconds, "the blocking task has ended");
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::io::Write;
    use std::sync::mpsc::{Receiver, channel};
    use std::sync::{Arc, Mutex};

    use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
    use test_support::eventually;
    use tracing_subscriber::fmt::MakeWriter;

    use super::*;

    const SHORT: Duration = Duration::from_millis(20);
    const SLOW: &str = "blocking_tasks_slow_total{task=\"a::slow::task\"} 1";

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl<'w> MakeWriter<'w> for Log {
        type Writer = Log;

        fn make_writer(&'w self) -> Log {
            self.clone()
        }
    }

    /// Runs the test on one thread, so that it sees only its own metrics and log lines.
    fn on_one_thread(test: impl AsyncFnOnce(PrometheusHandle, Log)) {
        let recorder = PrometheusBuilder::new().build_recorder();
        let figures = recorder.handle();
        let log = Log::default();
        let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).finish();
        let _figures = metrics::set_default_local_recorder(&recorder);
        let _log = tracing::subscriber::set_default(subscriber);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(test(figures, log));
    }

    async fn shows(figures: &PrometheusHandle, line: &str) {
        eventually(|| {
            let text = figures.render();
            let shown = text.lines().any(|shown| shown == line);
            ready(if shown { Ok(()) } else { Err(text) })
        })
        .await;
    }

    fn work(text: &'static str, go_on: Receiver<()>) -> impl FnOnce() -> &'static str {
        move || {
            go_on.recv().ok();
            text
        }
    }

    #[test]
    fn a_task_that_takes_too_long_shows_by_name_in_figures_and_log_until_it_ends() {
        on_one_thread(async |figures, log| {
            let (end, go_on) = channel();
            let task = spawn_watched(
                &Handle::current(),
                "a::slow::task",
                SHORT,
                work("its secret", go_on),
            );
            shows(&figures, "blocking_tasks_overdue 1").await;
            shows(&figures, SLOW).await;
            end.send(()).unwrap();
            assert_eq!(task.await.unwrap(), "its secret");
            shows(&figures, "blocking_tasks_overdue 0").await;
            shows(&figures, SLOW).await;
            let lines = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
            assert_eq!(lines.matches("WARN").count(), 2, "{lines}");
            assert_eq!(lines.matches("a::slow::task").count(), 2, "{lines}");
            assert!(!lines.contains("secret"), "{lines}");
        });
    }

    #[test]
    fn a_task_that_panics_has_ended() {
        on_one_thread(async |figures, _| {
            let (end, go_on) = channel::<()>();
            let panics = move || {
                go_on.recv().ok();
                panic!("as it should");
            };
            let task: JoinHandle<()> = spawn_watched(&Handle::current(), "a::slow::task", SHORT, panics);
            shows(&figures, "blocking_tasks_overdue 1").await;
            drop(end);
            assert!(task.await.is_err());
            shows(&figures, "blocking_tasks_overdue 0").await;
        });
    }

    #[test]
    fn a_task_that_ends_in_time_leaves_no_trace() {
        on_one_thread(async |figures, log| {
            assert_eq!(spawn(|| 1).await.unwrap(), 1);
            tokio::task::yield_now().await;
            assert!(
                !figures.render().contains("blocking_tasks"),
                "{}",
                figures.render()
            );
            assert!(log.0.lock().unwrap().is_empty());
        });
    }

    #[test]
    fn tasks_are_named_after_the_function_that_starts_them() {
        fn name<W: FnOnce()>(_: W) -> &'static str {
            name_of::<W>()
        }
        let here = "blocking::tests::tasks_are_named_after_the_function_that_starts_them";
        assert_eq!(name(|| ()), here);
        assert_eq!(
            path_in_crate("<threat_memory::a::Core<T> as x::Y>::run::{{closure}}"),
            "a::Core"
        );
        assert_eq!(
            path_in_crate("threat_memory::a::run<u8>::{{closure}}::{{closure}}"),
            "a::run"
        );
    }
}
