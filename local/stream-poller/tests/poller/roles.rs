use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{Function, MemoryStream, drain, mapping, settings, start};
use stream_poller::{MappingSettings, Pace, Poller, Role, SourceError, StreamCall};

/// A role that denies the calls in the first list, and records all calls in the second list.
#[derive(Clone, Default)]
struct Lacking(Arc<Mutex<(Vec<StreamCall>, Vec<StreamCall>)>>);

impl Lacking {
    fn of(calls: &[StreamCall]) -> Self {
        Self(Arc::new(Mutex::new((calls.to_vec(), Vec::new()))))
    }

    fn asked(&self, call: StreamCall) -> usize {
        self.0.lock().unwrap().1.iter().filter(|asked| **asked == call).count()
    }
}

impl Role for Lacking {
    fn check(&self, call: StreamCall) -> Result<(), String> {
        let mut role = self.0.lock().unwrap();
        role.1.push(call);
        if role.0.contains(&call) { Err(format!("{call:?}")) } else { Ok(()) }
    }
}

#[tokio::test(start_paused = true)]
async fn the_role_of_each_mapping_is_checked_for_every_call_even_on_a_shared_page() {
    let stream = MemoryStream::new();
    stream.insert(1..=5);
    let (function, roles) = (Function::willing(), [Lacking::default(), Lacking::default()]);
    let mappings = roles.iter().map(|role| mapping(settings(), &function).with_role(Arc::new(role.clone())));
    let poller = start(&stream, mappings.collect()).await;
    drain(&poller).await;
    for role in roles {
        for call in [StreamCall::DescribeStream, StreamCall::GetShardIterator, StreamCall::GetRecords] {
            assert!(role.asked(call) > 0, "{call:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_mapping_without_read_permission_reports_the_error_and_continues_when_permitted() {
    for call in [StreamCall::GetShardIterator, StreamCall::GetRecords] {
        let stream = MemoryStream::new();
        stream.insert(1..=5);
        let (stopped, other, role) = (Function::willing(), Function::willing(), Lacking::of(&[call]));
        let named = |name: &str| MappingSettings::for_function(name);
        let mappings = vec![
            mapping(named("stopped"), &stopped).with_role(Arc::new(role.clone())),
            mapping(named("other"), &other),
        ];
        let poller = start(&stream, mappings).await;
        tokio::time::timeout(Duration::from_secs(600), poller.drained()).await.unwrap_err();
        assert_eq!((stopped.calls().len(), other.calls().concat()), (0, vec![1, 2, 3, 4, 5]));
        let progress = poller.progress().mappings.remove(0);
        assert_eq!(progress.shards[0].trouble, Some(SourceError::Denied(format!("{call:?}"))));

        role.0.lock().unwrap().0.clear();
        drain(&poller).await;
        assert_eq!(stopped.calls().concat(), [1, 2, 3, 4, 5]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_poller_does_not_start_if_a_role_lacks_the_permission_to_list_the_shards() {
    let stream = MemoryStream::new();
    let refused =
        mapping(settings(), &Function::willing()).with_role(Arc::new(Lacking::of(&[StreamCall::DescribeStream])));
    let started = Poller::start(stream, vec![refused], Pace::default()).await;
    let error = started.err().unwrap();
    assert_eq!(error, SourceError::Denied("DescribeStream".to_owned()));
    assert_eq!(error.to_string(), "the function's role does not allow reading the stream: DescribeStream");
}
