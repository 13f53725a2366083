//! Conditional writes of one item, or of many in one transaction.

use std::collections::HashMap;

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{
    AttributeValue, CancellationReason, ConditionCheck, ConsumedCapacity, Delete, Put, ReturnConsumedCapacity,
    ReturnValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use item_model::item::{FromItem, Item, size};
use item_model::pattern::Pattern;
use item_model::request::{Guarded, Rendered, Single, Transaction, Write};
use telemetry::correlation;

use crate::Table;
use crate::error::{TableError, classify};
use crate::read::key_map;
use crate::refusal::{Refusal, Refusals};
use crate::retry::Backoff;
use crate::throttling;

type Attributes = HashMap<String, AttributeValue>;

#[derive(Debug)]
pub enum Attempt<A> {
    Done,
    /// No write was done, because some conditions do not hold.
    Refused(Refusals<A>),
    /// No write was done or will be done. The transaction conflicted with another transaction, or a
    /// partition was throttled.
    Cancelled {
        /// [`TableError::Contended`] or [`TableError::Throttled`].
        failure: TableError,
        /// The actions that conflicted or were throttled.
        busy: Vec<A>,
    },
}

impl Table {
    /// Writes one item if its condition holds. Otherwise returns the refusal.
    pub async fn write(&self, write: &Single<()>) -> Result<Result<(), Refusal>, TableError> {
        Ok(self.single(write.pattern(), write.guarded(), false).await?.map(|_| ()))
    }

    /// Updates one item if its condition holds, and returns the updated item. Otherwise returns the
    /// refusal.
    pub async fn update<T: FromItem>(&self, write: &Single<T>) -> Result<Result<T, Refusal>, TableError> {
        let updated = self.single(write.pattern(), write.guarded(), true).await?;
        Ok(match updated {
            Ok(item) => Ok(T::from_item(item.unwrap_or_default())?),
            Err(refusal) => Err(refusal),
        })
    }

    /// Executes a write of one item, and does not retry it after a lost response.
    ///
    /// The attempt may have changed the item although its response was lost. A retry would then
    /// report a failed condition although the change was made, or overwrite a later change. So only
    /// attempts that certainly had no effect (throttled or contended) are retried. After any other
    /// failure the caller reports that the outcome is unknown.
    async fn single(
        &self,
        pattern: &'static Pattern,
        guarded: &Guarded,
        returns: bool,
    ) -> Result<Result<Option<Item>, Refusal>, TableError> {
        let guarded = &caused(guarded);
        let mut backoff = Backoff::new();
        loop {
            match self.attempt(pattern, guarded, returns).await {
                Err(TableError::Contended | TableError::Throttled) if backoff.wait().await => {}
                Ok(written) => {
                    if let Some(contended) = backoff.contended_for() {
                        self.pressure.succeeded(contended);
                    }
                    return Ok(written);
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn attempt(
        &self,
        pattern: &'static Pattern,
        guarded: &Guarded,
        returns: bool,
    ) -> Result<Result<Option<Item>, Refusal>, TableError> {
        let Rendered { update, condition, names, values } = guarded.render();
        let (names, values) = (names_of(names), values_of(values));
        let old = condition.is_some().then_some(ReturnValuesOnConditionCheckFailure::AllOld);
        let capacity = ReturnConsumedCapacity::Total;
        let (attributes, consumed): (Option<Attributes>, Option<ConsumedCapacity>) = match &guarded.write {
            Write::Put { item } => {
                let answer = self
                    .once
                    .put_item()
                    .table_name(&self.name)
                    .set_item(Some(item.clone().into()))
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .set_return_values_on_condition_check_failure(old)
                    .return_consumed_capacity(capacity)
                    .send()
                    .await;
                let answer = match answer {
                    Ok(answer) => answer,
                    Err(error) => {
                        return refused(error, |error| match error {
                            PutItemError::ConditionalCheckFailedException(failed) => Some(failed.item),
                            _ => None,
                        })
                        .map(Err);
                    }
                };
                (None, answer.consumed_capacity)
            }
            Write::Update { key, .. } => {
                let answer = self
                    .once
                    .update_item()
                    .table_name(&self.name)
                    .set_key(Some(key_map(key)))
                    .set_update_expression(update)
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .set_return_values(returns.then_some(ReturnValue::AllNew))
                    .set_return_values_on_condition_check_failure(old)
                    .return_consumed_capacity(capacity)
                    .send()
                    .await;
                let answer = match answer {
                    Ok(answer) => answer,
                    Err(error) => {
                        return refused(error, |error| match error {
                            UpdateItemError::ConditionalCheckFailedException(failed) => Some(failed.item),
                            _ => None,
                        })
                        .map(Err);
                    }
                };
                (answer.attributes, answer.consumed_capacity)
            }
            Write::Delete { key } => {
                let answer = self
                    .once
                    .delete_item()
                    .table_name(&self.name)
                    .set_key(Some(key_map(key)))
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .set_return_values_on_condition_check_failure(old)
                    .return_consumed_capacity(capacity)
                    .send()
                    .await;
                let answer = match answer {
                    Ok(answer) => answer,
                    Err(error) => {
                        return refused(error, |error| match error {
                            DeleteItemError::ConditionalCheckFailedException(failed) => Some(failed.item),
                            _ => None,
                        })
                        .map(Err);
                    }
                };
                (None, answer.consumed_capacity)
            }
            Write::Check { .. } => {
                return Err(TableError::Rejected("a condition check is possible only in a transaction".to_owned()));
            }
        };
        let item: Option<Item> = attributes.map(Into::into);
        self.meter.record(pattern, consumed.as_ref(), usize::from(item.is_some()), item.as_ref().map_or(0, size));
        Ok(Ok(item))
    }

    /// Executes a transaction. If some conditions do not hold, writes nothing and returns the
    /// refused actions. After a conflict with another transaction, or if a partition is throttled,
    /// it retries with full jitter within a time budget.
    ///
    /// # Errors
    /// [`TableError`], for example [`TableError::TooManyActions`] before a request is sent.
    pub async fn transact<A: Clone>(
        &self,
        transaction: &Transaction<A>,
    ) -> Result<Result<(), Refusals<A>>, TableError> {
        let mut backoff = Backoff::new();
        loop {
            match self.try_transact(transaction, &mut backoff).await? {
                Attempt::Done => return Ok(Ok(())),
                Attempt::Refused(refusals) => return Ok(Err(refusals)),
                Attempt::Cancelled { failure, .. } if !backoff.wait().await => return Err(failure),
                Attempt::Cancelled { .. } => {}
            }
        }
    }

    /// Executes a transaction like [`Table::transact`], but returns [`Attempt::Cancelled`] instead
    /// of retrying a cancelled transaction. It is for callers that can write to another item
    /// instead. If DynamoDB is still executing an earlier attempt of the same transaction, the
    /// function waits for it within the caller's budget.
    pub async fn try_transact<A: Clone>(
        &self,
        transaction: &Transaction<A>,
        backoff: &mut Backoff,
    ) -> Result<Attempt<A>, TableError> {
        transaction.check_size()?;
        let actions = transaction.actions().iter().map(|(_, guarded)| self.action(&caused(guarded)));
        let actions = actions.collect::<Result<Vec<_>, _>>()?;
        // After a lost response, the SDK or this loop sends the transaction again. DynamoDB
        // executes transactions with the same token only once.
        let token = token();
        loop {
            let answer = self
                .client
                .transact_write_items()
                .set_transact_items(Some(actions.clone()))
                .client_request_token(&token)
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
                .await;
            let error = match answer {
                Ok(answer) => {
                    self.meter.record(transaction.pattern(), answer.consumed_capacity.iter().flatten(), 0, 0);
                    if let Some(contended) = backoff.contended_for() {
                        self.pressure.succeeded(contended);
                    }
                    return Ok(Attempt::Done);
                }
                Err(error) => error,
            };
            if let Some(reasons) = cancelled(&error) {
                // A cancelled transaction has ended. The caller's next attempt is a new transaction
                // with another token.
                return judge(reasons, transaction.actions());
            }
            let failure = classify(&error);
            // Only a transaction that is still in progress is retried here, with the same token.
            // The SDK has already retried throttling of the whole call.
            if !matches!(failure, TableError::Contended) || !backoff.wait().await {
                return Err(failure);
            }
        }
    }

    fn action(&self, guarded: &Guarded) -> Result<TransactWriteItem, TableError> {
        let Rendered { update, condition, names, values } = guarded.render();
        let (names, values) = (names_of(names), values_of(values));
        let old = condition.is_some().then_some(ReturnValuesOnConditionCheckFailure::AllOld);
        let rejected = |error: aws_sdk_dynamodb::error::BuildError| TableError::Rejected(error.to_string());
        let item = TransactWriteItem::builder();
        Ok(match &guarded.write {
            Write::Put { item: put } => item.put(
                Put::builder()
                    .table_name(&self.name)
                    .set_item(Some(put.clone().into()))
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .set_return_values_on_condition_check_failure(old)
                    .build()
                    .map_err(rejected)?,
            ),
            Write::Update { key, .. } => item.update(
                Update::builder()
                    .table_name(&self.name)
                    .set_key(Some(key_map(key)))
                    .set_update_expression(update)
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .set_return_values_on_condition_check_failure(old)
                    .build()
                    .map_err(rejected)?,
            ),
            Write::Delete { key } => item.delete(
                Delete::builder()
                    .table_name(&self.name)
                    .set_key(Some(key_map(key)))
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .set_return_values_on_condition_check_failure(old)
                    .build()
                    .map_err(rejected)?,
            ),
            Write::Check { key } => item.condition_check(
                ConditionCheck::builder()
                    .table_name(&self.name)
                    .set_key(Some(key_map(key)))
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .set_return_values_on_condition_check_failure(old)
                    .build()
                    .map_err(rejected)?,
            ),
        }
        .build())
    }
}

/// Returns a copy of the write that also stores the id of the request that caused the current work.
fn caused(guarded: &Guarded) -> Guarded {
    guarded.caused_by(correlation::cause().as_deref())
}

/// Creates the token of one transaction attempt. DynamoDB remembers it for ten minutes.
fn token() -> String {
    format!("{:032x}", fastrand::u128(..))
}

fn names_of(names: Vec<(String, String)>) -> Option<HashMap<String, String>> {
    (!names.is_empty()).then(|| names.into_iter().collect())
}

fn values_of(values: Vec<(String, serde_dynamo::AttributeValue)>) -> Option<Attributes> {
    (!values.is_empty()).then(|| values.into_iter().map(|(placeholder, value)| (placeholder, value.into())).collect())
}

/// Returns the refusal that an error contains, with the current item.
///
/// # Errors
/// Every other error.
fn refused<E>(
    error: SdkError<E, HttpResponse>,
    condition: impl Fn(E) -> Option<Option<Attributes>>,
) -> Result<Refusal, TableError>
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    let failure = classify(&error);
    if let SdkError::ServiceError(service) = error
        && let Some(old) = condition(service.into_err())
    {
        return Ok(Refusal { action: (), item: old.map(Into::into) });
    }
    Err(failure)
}

fn cancelled<R>(error: &SdkError<TransactWriteItemsError, R>) -> Option<&[CancellationReason]> {
    match error {
        SdkError::ServiceError(service) => match service.err() {
            TransactWriteItemsError::TransactionCanceledException(cancelled) => Some(cancelled.cancellation_reasons()),
            _ => None,
        },
        _ => None,
    }
}

/// Interprets a cancelled transaction. The reasons are in the order of the actions. Failed
/// conditions take precedence over conflicts, because DynamoDB evaluated the conditions on
/// committed items and a retry would fail again.
fn judge<A: Clone>(reasons: &[CancellationReason], actions: &[(A, Guarded)]) -> Result<Attempt<A>, TableError> {
    let refusals: Refusals<A> = reasons
        .iter()
        .zip(actions)
        .filter(|(reason, _)| reason.code() == Some("ConditionalCheckFailed"))
        .map(|(reason, (action, _))| {
            let item = reason.item.clone().filter(|item| !item.is_empty());
            Refusal { action: action.clone(), item: item.map(Into::into) }
        })
        .collect();
    if !refusals.is_empty() {
        return Ok(Attempt::Refused(refusals));
    }
    let has = |code: &str| reasons.iter().any(|reason| reason.code() == Some(code));
    const THROTTLES: [&str; 2] = ["ThrottlingError", "ProvisionedThroughputExceeded"];
    let is_busy = |reason: &CancellationReason| {
        reason.code().is_some_and(|code| code == "TransactionConflict" || THROTTLES.contains(&code))
    };
    let busy = reasons.iter().zip(actions).filter(|(reason, _)| is_busy(reason)).map(|(_, (action, _))| action.clone());
    let busy: Vec<A> = busy.collect();
    for throttle in THROTTLES.into_iter().filter(|code| has(code)) {
        throttling::count(throttle, None);
    }
    if !busy.is_empty() {
        let failure = if has("TransactionConflict") { TableError::Contended } else { TableError::Throttled };
        Ok(Attempt::Cancelled { failure, busy })
    } else {
        let codes: Vec<&str> =
            reasons.iter().filter_map(CancellationReason::code).filter(|code| *code != "None").collect();
        Err(TableError::Rejected(format!("transaction cancelled: {}", codes.join(", "))))
    }
}
