use super::*;

#[test]
fn the_real_stream_mappings_report_failures_and_keep_discarded_batches() {
    let template = real();
    let functions: Vec<&str> = template.streams.iter().map(|mapping| mapping.function.as_str()).collect();
    assert_eq!(functions, ["StreamSearch", "StreamEvents"]);
    // If the functions had stream and queue events, SAM would give these ids to the mappings. So a
    // stack that was deployed with such events keeps its mappings in an update.
    let ids: Vec<&str> = template.streams.iter().map(|mapping| mapping.logical_id.as_str()).collect();
    assert_eq!(
        (ids, template.queue_mappings.iter().map(|mapping| mapping.logical_id.as_str()).collect::<Vec<_>>()),
        (vec!["StreamSearchTable", "StreamEventsTable"], vec!["FulfilmentJobs", "CashierNotices"])
    );
    let bucket = template.buckets.iter().find(|bucket| bucket.logical_id == "FailedRecords").unwrap();
    for mapping in &template.streams {
        assert!(mapping.stream.ends_with(":table/Table/stream/latest"), "{}", mapping.stream);
        assert_eq!(mapping.starting_position, StartingPosition::TrimHorizon);
        assert_eq!(mapping.batch_size, 100);
        assert!(mapping.report_batch_item_failures && mapping.bisect_on_error);
        assert!(mapping.maximum_retries.is_some() && mapping.maximum_record_age.is_some());
        assert_eq!(mapping.on_failure.as_ref(), Some(&bucket.arn));
    }
    let filters: Vec<usize> = template.streams.iter().map(|mapping| mapping.filters.len()).collect();
    assert_eq!(filters, [2, 4]);
    let images = |index: usize| &template.streams[index].filters[0]["dynamodb"]["NewImage"]["entity"]["S"];
    assert_eq!(images(0), &json!(["Product", "Order", "Heartbeat"]));
    assert_eq!(images(1).as_array().unwrap().len(), 11);
}

/// Returns the small template with the resources in `more` and a mapping with these settings.
fn mapped(source: &str, settings: &str, more: &str) -> Result<Template, TemplateError> {
    let resource = format!(
        "{more}  Mapped:\n    Type: AWS::Lambda::EventSourceMapping\n    Properties: {{FunctionName: !GetAtt One.Arn, \
         EventSourceArn: {source}{settings}}}\n  One:\n"
    );
    small("  One:\n", &resource)
}

fn of_stream(settings: &str) -> Result<Template, TemplateError> {
    let bucket = "  Kept: {Type: AWS::S3::Bucket}\n";
    mapped("!GetAtt Table.StreamArn", &format!(", StartingPosition: TRIM_HORIZON{settings}"), bucket)
}

#[test]
fn a_stream_mapping_is_checked_against_lambdas_limits() {
    let plain = of_stream("").unwrap().streams.remove(0);
    assert_eq!((plain.logical_id.as_str(), plain.function.as_str()), ("Mapped", "One"));
    assert_eq!(plain.stream, "arn:aws:dynamodb:r:a:table/Table/stream/latest");
    assert_eq!((plain.batch_size, plain.parallelization_factor), (100, 1));
    assert_eq!((plain.maximum_retries, plain.maximum_record_age, plain.on_failure), (None, None, None));
    assert!(!plain.report_batch_item_failures && !plain.bisect_on_error);
    let kept = of_stream(", DestinationConfig: {OnFailure: {Destination: !GetAtt Kept.Arn}}").unwrap();
    assert_eq!(kept.streams[0].on_failure.as_deref(), Some("arn:aws:s3:::Kept"));
    for (settings, expected) in [
        (", BatchSize: 0", "a number from 1 to 10000"),
        (", ParallelizationFactor: 11", "a number from 1 to 10"),
        (", FunctionResponseTypes: [Other]", "only ReportBatchItemFailures is known"),
        (", FilterCriteria: {Filters: [{Pattern: '{'}]}", "the pattern is not JSON"),
        (", FilterCriteria: {Filters: [{Pattern: '[]'}]}", "must be a JSON object"),
        (
            ", FilterCriteria: {Filters: [{Pattern: '{\"a\": [{\"wildcard\": \"x*\"}]}'}]}",
            "the operator `wildcard` does not exist",
        ),
        (", BisectBatchOnFunctionError: maybe", "must be true or false, not maybe"),
        (
            ", DestinationConfig: {OnFailure: {Destination: 'arn:aws:sqs:r:a:x'}}",
            "arn:aws:sqs:r:a:x is no bucket of this",
        ),
        // SAM's event has a `Type`, but Lambda's resource has none.
        (
            ", DestinationConfig: {OnFailure: {Type: S3, Destination: !GetAtt Kept.Arn}}",
            "Type: this property is not supported",
        ),
        (", Enabled: false", "this property is not supported"),
        (", ScalingConfig: {MaximumConcurrency: 2}", "ScalingConfig: this property is not supported"),
    ] {
        let message = of_stream(settings).unwrap_err().to_string();
        assert!(message.contains(expected), "{settings} gave {message}");
        assert!(message.contains("Mapped.Properties"), "{message}");
    }
}

#[test]
fn a_mapping_of_a_resource_outside_the_template_is_refused() {
    for (source, expected) in [
        ("'arn:aws:kinesis:r:a:stream/x'", "arn:aws:kinesis:r:a:stream/x is neither a queue nor the table's stream"),
        ("!GetAtt Table.Arn", "table/Table is neither a queue nor the table's stream"),
        ("!GetAtt Nobody.Arn", "there is no resource Nobody"),
    ] {
        let message = mapped(source, "", "").unwrap_err().to_string();
        assert!(message.contains(expected), "{source} gave {message}");
    }
    let other = small(
        "  One:\n",
        "  Mapped: {Type: AWS::Lambda::EventSourceMapping, Properties: \
         {FunctionName: One, EventSourceArn: !GetAtt Table.StreamArn}}\n  One:\n",
    );
    let message = other.unwrap_err().to_string();
    assert!(message.contains("FunctionName: One is no function of this template"), "{message}");
}

#[test]
fn stream_and_queue_events_of_functions_are_refused() {
    for event in [
        "Table: {Type: DynamoDB, Properties: {Stream: !GetAtt Table.StreamArn, StartingPosition: LATEST}}",
        "Jobs: {Type: SQS, Properties: {Queue: 'arn:aws:sqs:r:a:x'}}",
    ] {
        let message = small("Read:", &format!("{event}\n        Read:")).unwrap_err().to_string();
        for part in
            ["One.Properties.Events.", "every stream or queue of the account", "AWS::Lambda::EventSourceMapping"]
        {
            assert!(message.contains(part), "{event} gave {message}");
        }
        assert!(!message.contains('\n'), "{message}");
    }
}

/// Lambda reads a stream or queue with the role of the function that it invokes. So only functions
/// with a mapping may read the stream or receive picking jobs.
#[test]
fn only_the_consumers_may_read_the_stream_and_only_their_subscribers_may_receive_messages() {
    let template = real();
    let holders = |service: &str| -> BTreeSet<&str> {
        let holds = |function: &&Function| {
            let on = |statement: &Statement| {
                statement.actions.iter().any(|action| action.starts_with(service))
                    && statement.resources.iter().any(|on| service != "dynamodb:" || on.contains("/stream/"))
            };
            function.statements.iter().any(on)
        };
        template.functions.iter().filter(holds).map(|function| function.logical_id.as_str()).collect()
    };
    assert_eq!(holders("dynamodb:"), ["StreamEvents", "StreamSearch"].into());
    assert_eq!(holders("sqs:"), ["Agents", "Cashier", "Courier", "Fulfilment"].into());
    for mapping in &template.streams {
        let function = template.function(&mapping.function).unwrap();
        for (action, on) in [
            ("dynamodb:DescribeStream", "/stream/latest"),
            ("dynamodb:GetRecords", "/stream/latest"),
            ("dynamodb:GetShardIterator", "/stream/latest"),
            ("dynamodb:ListStreams", "/stream/*"),
            ("s3:PutObject", "FailedRecords/aws/lambda/*"),
            ("s3:ListBucket", ":::FailedRecords"),
        ] {
            assert!(function.may(action, on), "{}: {action}", mapping.function);
        }
    }
}
