/// The role of a function. To read the stream for the function, Lambda assumes the role.
pub trait Role: Send + Sync + 'static {
    /// Checks that the role allows this call of the stream.
    ///
    /// # Errors
    /// The reason, in AWS's wording.
    fn check(&self, call: StreamCall) -> Result<(), String>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamCall {
    DescribeStream,
    /// Returns an iterator, which is a position in a shard.
    GetShardIterator,
    GetRecords,
}
