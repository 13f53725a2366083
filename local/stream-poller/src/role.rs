//! What a function's role lets its mapping do.

/// The role of a function, which Lambda assumes to read the stream for it.
pub trait Role: Send + Sync + 'static {
    /// Whether it may make this call of the stream.
    ///
    /// # Errors
    /// Why not, in the words of the service.
    fn ask(&self, call: StreamCall) -> Result<(), String>;
}

/// A call of the DynamoDB Streams API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamCall {
    /// Which shards there are.
    DescribeStream,
    /// A place in a shard.
    GetShardIterator,
    /// The records at a place.
    GetRecords,
}
