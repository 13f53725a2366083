use std::sync::Arc;

use bytes::Bytes;
use event_bus::Invoke;
use runtime_api::Functions;
use serde_json::{Value, json};
use template::{Schedule, Template};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::backends::ACCOUNT;
use crate::dynamodb::REGION;
use crate::mappings::uuid;
use crate::subscribers;

/// Starts the enabled schedules. Each schedule invokes its function for the first time after one
/// interval. The tasks end when `stop` becomes true or its sender is dropped.
pub(crate) fn start(
    template: &Template,
    functions: &Arc<Functions>,
    stop: &watch::Sender<bool>,
) -> Vec<JoinHandle<()>> {
    let enabled = template.schedules.iter().filter(|schedule| schedule.enabled);
    let task = |schedule: &Schedule| {
        let function = subscribers::function(functions, &schedule.function);
        tokio::spawn(run(schedule.clone(), function, stop.subscribe()))
    };
    enabled.map(task).collect()
}

/// If an invocation takes longer than the interval, the next invocation begins when the long one
/// ends. It replaces all invocations that were due in the meantime. A failed invocation is not
/// retried, because the next invocation follows soon.
async fn run(schedule: Schedule, function: Arc<dyn Invoke>, mut stop: watch::Receiver<bool>) {
    let mut ticks = interval_at(Instant::now() + schedule.every, schedule.every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        let once = async {
            ticks.tick().await;
            let event = schedule.input.clone().unwrap_or_else(|| event(&schedule, OffsetDateTime::now_utc()));
            if let Err(error) = function.invoke(Bytes::from(event.to_string())).await {
                tracing::warn!(
                    %error, function = schedule.function, schedule = schedule.event, "a scheduled run failed",
                );
            }
        };
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            () = once => {}
        }
    }
}

/// Returns the event that EventBridge sends for a schedule without an input.
fn event(schedule: &Schedule, at: OffsetDateTime) -> Value {
    let second = at.replace_nanosecond(0).unwrap_or(at);
    json!({
        "version": "0",
        "id": uuid(fastrand::u128(..)),
        "detail-type": "Scheduled Event",
        "source": "aws.events",
        "account": ACCOUNT,
        "time": second.format(&Rfc3339).unwrap_or_default(),
        "region": REGION,
        "resources": [format!("arn:aws:events:{REGION}:{ACCOUNT}:rule/{}", schedule.rule())],
        "detail": {},
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use std::time::Duration;

    use event_bus::CallError;
    use futures::future::{BoxFuture, FutureExt as _};
    use tokio::sync::mpsc;
    use tokio::time::sleep;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn every_minute() -> Schedule {
        Schedule {
            function: "Janitor".to_owned(),
            event: "Minute".to_owned(),
            every: MINUTE,
            enabled: true,
            input: None,
        }
    }

    /// A function that takes a given time, and fails if `fails` is true. It records the time and
    /// the payload of each call.
    struct Slow {
        begun: Instant,
        takes: Duration,
        fails: bool,
        calls: mpsc::UnboundedSender<(u64, Value)>,
    }

    impl Invoke for Slow {
        fn invoke(&self, payload: Bytes) -> BoxFuture<'_, Result<Bytes, CallError>> {
            async move {
                let payload = serde_json::from_slice(&payload).unwrap();
                self.calls.send((self.begun.elapsed().as_secs(), payload)).unwrap();
                sleep(self.takes).await;
                if self.fails { Err(CallError::Failed("it fails".to_owned())) } else { Ok(Bytes::new()) }
            }
            .boxed()
        }
    }

    /// Runs a schedule for a time. Returns the time and the payload of each call.
    async fn calls(schedule: Schedule, takes: Duration, fails: bool, time: Duration) -> Vec<(u64, Value)> {
        let (sender, mut calls) = mpsc::unbounded_channel();
        let function = Arc::new(Slow { begun: Instant::now(), takes, fails, calls: sender });
        let stop = watch::Sender::new(false);
        let task = tokio::spawn(run(schedule, function, stop.subscribe()));
        sleep(time).await;
        stop.send_replace(true);
        // The schedule stops even in the middle of an invocation.
        task.await.unwrap();
        let mut all = Vec::new();
        while let Some(call) = calls.recv().await {
            all.push(call);
        }
        all
    }

    fn times(calls: &[(u64, Value)]) -> Vec<u64> {
        calls.iter().map(|(at, _)| *at).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_function_is_invoked_once_in_each_interval_until_the_stop() {
        let calls = calls(every_minute(), Duration::from_secs(1), false, Duration::from_secs(200)).await;
        assert_eq!(times(&calls), [60, 120, 180]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_schedule_waits_for_a_slow_run_and_replaces_all_missed_runs_by_one() {
        let calls = calls(every_minute(), Duration::from_secs(130), false, Duration::from_secs(500)).await;
        assert_eq!(times(&calls), [60, 190, 320, 450]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_run_does_not_stop_the_schedule() {
        let calls = calls(every_minute(), Duration::from_secs(1), true, Duration::from_secs(130)).await;
        assert_eq!(times(&calls), [60, 120]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_scheduled_function_gets_its_input_or_the_event_of_eventbridge() {
        let input = json!({"grace_seconds": 5});
        let fed = Schedule { input: Some(input.clone()), ..every_minute() };
        assert_eq!(calls(fed, Duration::ZERO, false, Duration::from_secs(61)).await, [(60, input)]);
        let (_, event) = calls(every_minute(), Duration::ZERO, false, Duration::from_secs(61)).await.remove(0);
        let sample: Value = serde_json::from_str(include_str!("../../events/janitor-scheduled.json")).unwrap();
        let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&event), keys(&sample));
        assert_eq!((&event["source"], &event["detail-type"]), (&sample["source"], &sample["detail-type"]));
        assert!(event["resources"][0].as_str().unwrap().ends_with(":rule/JanitorMinute"), "{event}");
        assert_eq!(event["time"].as_str().unwrap().len(), "2026-11-20T12:00:00Z".len(), "{event}");
    }
}
