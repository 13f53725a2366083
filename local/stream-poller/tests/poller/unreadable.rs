use std::time::Duration;

use crate::common::{Function, MemoryStream, drain, mapping, only, settings, start};
use stream_poller::SourceError;

#[tokio::test(start_paused = true)]
async fn an_unreadable_stream_is_not_drained_and_shows_its_error_until_it_can_be_read() {
    let stream = MemoryStream::new();
    let function = Function::willing();
    let away = SourceError::Unavailable("away".to_owned());
    (0..5).for_each(|_| stream.trouble(away.clone()));
    stream.insert([1]);
    let poller = start(&stream, vec![mapping(settings(), &function)]).await;
    tokio::time::timeout(Duration::from_secs(1), poller.drained()).await.unwrap_err();
    let progress = only(&poller);
    assert_eq!((progress.pending, progress.shards[0].trouble.clone()), (0, Some(away)));
    drain(&poller).await;
    assert_eq!((only(&poller).delivered, only(&poller).shards[0].trouble.clone()), (1, None));
}
