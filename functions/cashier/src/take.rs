//! Settles the payments that messages name.

use bus::queue::{Answer, Batch, Message};
use bus::{Data, PaymentNotified};
use payments::PaymentError;
use telemetry::correlation;
use tokio::time::{Instant, timeout_at};

use crate::{Cashier, CashierError};

impl Cashier {
    /// Handles a batch until `stop`, one message after another.
    pub async fn take(&self, batch: &Batch, stop: Instant) -> Answer {
        let mut failed = Vec::new();
        for message in &batch.records {
            let (message_id, cause) = (message.id.as_str(), message.cause());
            let correlation_id = cause.as_deref();
            match timeout_at(stop, correlation::caused_by(correlation_id, self.handle(message))).await {
                Ok(Ok(())) => continue,
                Ok(Err(CashierError::Message(error))) => {
                    tracing::error!(message_id, %error, "a message cannot be read");
                }
                Ok(Err(error)) => tracing::warn!(message_id, correlation_id, %error, "a message failed"),
                Err(_) => tracing::warn!(message_id, correlation_id, "no time is left for a message"),
            }
            failed.push(message.id.clone());
        }
        Answer::naming(failed)
    }

    async fn handle(&self, message: &Message) -> Result<(), CashierError> {
        let Data::PaymentNotified(PaymentNotified { intent, order_id }) = message.event()?.data else { return Ok(()) };
        let order = match order_id {
            Some(order) => Some(order),
            // Only the provider knows the order.
            None => match self.account.keys().await?.provider.read(&intent).await {
                Ok(read) => read.order,
                // A payment of another account.
                Err(PaymentError::Refused(_)) => None,
                Err(error) => return Err(error.into()),
            },
        };
        let is_known = match &order {
            Some(order) => self.settle(order, Some(&intent)).await?,
            None => false,
        };
        if !is_known {
            tracing::info!(intent, "a payment of the provider belongs to no order");
        }
        Ok(())
    }
}
