use super::*;

#[tokio::test(start_paused = true)]
async fn a_rebuild_waits_once_for_calls_that_began_before_it() {
    let (began, longest) = (Instant::now(), Duration::from_secs(5));
    let earlier = EarlierCalls::until_now(longest);
    // The backfill takes a part of `longest`.
    sleep(Duration::from_secs(2)).await;
    for _ in 0..2 {
        earlier.end().await;
        let took = began.elapsed();
        assert!(took >= longest && took < longest + Duration::from_millis(10), "{took:?}");
    }
}
