//! Checks a mapping's calls against its function's role.

/// The role of a function, which Lambda assumes to read the stream for it.
pub trait Role: Send + Sync + 'static {
    /// Checks that the role allows this call of the stream.
    ///
    /// # Errors
    /// The reason, in the service's words.
    fn ask(&self, call: StreamCall) -> Result<(), String>;
}

/// A call of the DynamoDB Streams API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamCall {
    /// Lists the shards.
    DescribeStream,
    /// Returns a position in a shard.
    GetShardIterator,
    /// Returns the records at a position.
    GetRecords,
}
