use super::*;

/// Resources that the tests insert into the small template before its function.
const BUS: &str = "  Bus: {Type: AWS::Events::EventBus, Properties: {Name: things}}
  Kept: {Type: AWS::Events::Archive, Properties: {SourceArn: !GetAtt Bus.Arn, RetentionDays: 7}}
  Rule:
    Type: AWS::Events::Rule
    Properties:
      EventBusName: !Ref Bus
      EventPattern: {detail-type: [Placed], detail: {level: [!Ref Level, {prefix: x}], total: [5]}}
      Targets:
        - {Id: Later, Arn: !GetAtt One.Arn}
        - Id: Queue
          Arn: !GetAtt Jobs.Arn
          RetryPolicy: {MaximumRetryAttempts: 3, MaximumEventAgeInSeconds: 60}
          DeadLetterConfig: {Arn: !GetAtt Dead.Arn}
  Jobs:
    Type: AWS::SQS::Queue
    Properties:
      VisibilityTimeout: 18
      RedrivePolicy: {deadLetterTargetArn: !GetAtt Dead.Arn, maxReceiveCount: 4}
  Dead: {Type: AWS::SQS::Queue}
  Kept2: {Type: AWS::S3::Bucket}
  Mapped:
    Type: AWS::Lambda::EventSourceMapping
    Properties:
      FunctionName: !GetAtt One.Arn
      EventSourceArn: !GetAtt Jobs.Arn
      FunctionResponseTypes: [ReportBatchItemFailures]
      ScalingConfig: {MaximumConcurrency: 3}
  One:
";

fn with_bus(from: &str, to: &str) -> Result<Template, TemplateError> {
    let events = "      EventInvokeConfig: {MaximumRetryAttempts: 1, DestinationConfig: {OnFailure: {Type: SQS, Destination: !GetAtt Dead.Arn}}}
      Events:
";
    let text = SMALL.replace("  One:\n", BUS).replace("      Events:\n", events);
    assert!(text.contains(from), "the template has no {from:?}");
    Template::parse_for(
        &text.replacen(from, to, 1),
        &Deployment::new("r", "a").name("Bus", "shop").name("Kept2", "kept"),
    )
}

#[test]
fn a_bus_and_rules_and_queues_are_read_with_the_defaults_of_aws() {
    let template = with_bus("things", "things").unwrap();
    assert_eq!(template.buses, [Bus { logical_id: "Bus".to_owned(), name: "shop".to_owned() }]);
    let rule = &template.rules[0];
    assert_eq!((rule.logical_id.as_str(), rule.bus.as_str()), ("Rule", "shop"));
    let detail = json!({"level": ["low", {"prefix": "x"}], "total": [5]});
    assert_eq!(rule.pattern, json!({"detail-type": ["Placed"], "detail": detail}));
    let [later, queue] = &rule.targets[..] else { panic!("{:?}", rule.targets) };
    assert_eq!((later.arn.as_str(), later.maximum_retries), ("arn:aws:lambda:r:a:function:One", 185));
    assert_eq!((later.maximum_age, &later.dead_letter), (Duration::from_secs(86_400), &None));
    assert_eq!((queue.maximum_retries, queue.maximum_age), (3, Duration::from_secs(60)));
    assert_eq!(queue.dead_letter.as_deref(), Some("arn:aws:sqs:r:a:Dead"));
    let [jobs, dead] = &template.queues[..] else { panic!("{:?}", template.queues) };
    assert_eq!(jobs.visibility_timeout, Duration::from_secs(18));
    assert_eq!(jobs.redrive, Some(Redrive { arn: dead.arn.clone(), maximum_receive_count: 4 }));
    assert_eq!((dead.visibility_timeout, dead.retention), (Duration::from_secs(30), Duration::from_secs(345_600)));
    let mapping = &template.queue_mappings[0];
    assert_eq!((mapping.logical_id.as_str(), mapping.function.as_str(), &mapping.queue), ("Mapped", "One", &jobs.arn));
    assert_eq!((mapping.batch_size, mapping.maximum_concurrency), (10, Some(3)));
    assert!(mapping.report_batch_item_failures && mapping.batching_window.is_zero());
    assert_eq!((template.buckets[0].name.as_str(), template.buckets[0].arn.as_str()), ("kept", "arn:aws:s3:::kept"));
    let asynchronous = &template.functions[0].asynchronous;
    assert_eq!((asynchronous.maximum_retries, asynchronous.maximum_age), (1, Duration::from_secs(21_600)));
    assert_eq!(asynchronous.on_failure.as_ref().unwrap().arn, dead.arn);
}

#[test]
fn unknown_settings_of_the_bus_are_refused_with_their_place() {
    for (from, to, expected) in [
        ("Properties: {Name: things}", "Properties: {Name: things, Speed: 3}", "Speed: this property is not supported"),
        ("{prefix: x}", "{cidr: x}", "EventPattern: invalid event pattern: the operator `cidr`"),
        (
            "detail-type: [Placed]",
            "detail-type: Placed",
            "EventPattern: invalid event pattern: the value of `detail-type`",
        ),
        ("EventBusName: !Ref Bus", "EventBusName: other", "Rule: there is no bus other"),
        (
            "EventBusName: !Ref Bus",
            "EventBusName: !Ref Bus\n      ScheduleExpression: x",
            "ScheduleExpression: this property",
        ),
        ("Arn: !GetAtt One.Arn", "Arn: 'arn:aws:sns:r:a:x'", "arn:aws:sns:r:a:x is no function or queue of this"),
        ("Id: Queue", "Id: Later", "the target Later is defined twice"),
        ("MaximumRetryAttempts: 3", "MaximumRetryAttempts: 186", "a number from 0 to 185"),
        ("DeadLetterConfig: {Arn: !GetAtt Dead.Arn}", "DeadLetterConfig: {Arn: x}", "x is no queue of this template"),
        (
            "Arn: !GetAtt One.Arn",
            "Arn: !GetAtt One.Arn, InputPath: $.detail",
            "InputPath: this property is not supported",
        ),
        ("VisibilityTimeout: 18", "VisibilityTimeout: 43201", "a number from 0 to 43200"),
        ("VisibilityTimeout: 18", "FifoQueue: true", "FifoQueue: this property is not supported"),
        ("maxReceiveCount: 4", "maxReceiveCount: 0", "a number from 1 to 1000"),
        ("MaximumConcurrency: 3", "MaximumConcurrency: 1", "a number from 2 to 1000"),
        (
            "EventSourceArn: !GetAtt Jobs.Arn",
            "EventSourceArn: !GetAtt Jobs.Arn\n      BatchSize: 11",
            "needs a MaximumBatchingWindowInSeconds",
        ),
        ("EventSourceArn: !GetAtt Jobs.Arn", "EventSourceArn: y", "y is neither a queue nor the table's stream"),
        (
            "EventSourceArn: !GetAtt Jobs.Arn",
            "EventSourceArn: !GetAtt Jobs.Arn\n      StartingPosition: LATEST",
            "StartingPosition: this property is not supported",
        ),
        (
            "EventInvokeConfig: {MaximumRetryAttempts: 1",
            "EventInvokeConfig: {MaximumRetryAttempts: 3",
            "a number from 0 to 2",
        ),
        ("RetentionDays: 7", "RetentionDays: -1", "a number from 0 to"),
    ] {
        let error = with_bus(from, to).unwrap_err();
        let message = error.to_string();
        assert!(message.contains(expected), "{to:?} gave {message:?}");
        assert!(error.line().is_some_and(|line| line > 10), "{message:?}");
    }
}

fn notifier_variable<'a>(template: &'a Template, name: &str) -> &'a str {
    &template.function("Notifier").unwrap().environment[name]
}

#[test]
fn the_real_rules_match_only_the_events_of_their_subscribers() {
    let template = Template::read_for(&real_path(), &local()).unwrap();
    let taken_by = |event: &serde_json::Value| -> Vec<&str> {
        let takes = |rule: &&Rule| {
            event_pattern::Pattern::new(&rule.pattern, event_pattern::Dialect::EventBridge).unwrap().matches(event)
        };
        template.rules.iter().filter(takes).map(|rule| rule.logical_id.as_str()).collect()
    };
    let moved = |from: &str, to: &str| {
        json!({
            "source": "bodega", "detail-type": "OrderStatusChanged", "detail": {"data": {"from": from, "to": to}},
        })
    };
    for (from, to, warehouse) in [
        ("pending", "paid", true),
        ("paid", "picking", true),
        ("picking", "shipped", true),
        ("paid", "cancelled", true),
        ("picking", "cancelled", true),
        ("pending", "cancelled", false),
        ("shipped", "delivered", false),
    ] {
        let picking = warehouse.then_some("PickingRule");
        let expected: Vec<&str> = ["NotifierRule"].into_iter().chain(picking).chain(["WebhookRule"]).collect();
        assert_eq!(taken_by(&moved(from, to)), expected, "{from} to {to}");
    }
    assert_eq!(
        taken_by(&json!({"source": "bodega", "detail-type": "OrderPlaced", "detail": {"data": {}}})),
        ["NotifierRule", "WebhookRule"]
    );
    let low = json!({"source": "bodega", "detail-type": "StockLow", "detail": {"data": {}}});
    assert_eq!(taken_by(&low), ["WebhookRule"]);
    assert!(taken_by(&json!({"source": "other", "detail-type": "OrderPlaced"})).is_empty());
    let of_agent = json!({"source": "bodega", "detail-type": "OrderPlaced", "detail": {"data": {"agent": "acme"}}});
    assert_eq!(taken_by(&of_agent), ["NotifierRule", "WebhookRule", "AgentRule"]);
    let refunded = json!({"source": "bodega", "detail-type": "PaymentReversed", "detail": {"data": {}}});
    assert_eq!(taken_by(&refunded), ["NotifierRule", "WebhookRule", "AgentRule"]);
    let requested = json!({"source": "bodega", "detail-type": "EmailVerificationRequested", "detail": {"data": {}}});
    assert_eq!(taken_by(&requested), ["NotifierRule"]);
    // SES sends the events of all stacks of an account to one bus, so the rule must select the
    // events of its own stack's mails.
    let reported = |kind: &str, set: &str| {
        json!({
            "source": "aws.ses", "detail-type": kind, "detail": {"mail": {"tags": {"ses:configuration-set": [set]}}},
        })
    };
    let set = notifier_variable(&template, "MAIL_CONFIGURATION_SET");
    for kind in ["Email Bounced", "Email Complaint Received"] {
        assert_eq!(taken_by(&reported(kind, set)), ["MailFeedbackRule"]);
        assert!(taken_by(&reported(kind, "another")).is_empty());
    }
    assert!(taken_by(&reported("Email Delivered", set)).is_empty());
    let failures = |id: &str| template.queues.iter().find(|queue| queue.logical_id == id).unwrap().arn.as_str();
    let notifier = template.function("Notifier").unwrap();
    assert_eq!(notifier.asynchronous.on_failure.as_ref().unwrap().arn, failures("NotifierFailures"));
    for rule in &template.rules {
        assert!(rule.targets.iter().all(|target| target.dead_letter.is_some()), "{}", rule.logical_id);
    }
    let expected = [
        ("Agents", "AgentFailures"),
        ("Fulfilment", "PickingFailures"),
        ("Cashier", "PaymentFailures"),
        ("Courier", "WebhookFailures"),
    ];
    assert_eq!(template.queue_mappings.len(), expected.len());
    for (mapping, (function, failed)) in template.queue_mappings.iter().zip(expected) {
        assert!(mapping.function == function && mapping.report_batch_item_failures);
        let queue = template.queues.iter().find(|queue| queue.arn == mapping.queue).unwrap();
        assert_eq!(queue.redrive.as_ref().unwrap().arn, failures(failed));
        let timeout = template.function(function).unwrap().timeout;
        assert!(queue.visibility_timeout >= 6 * timeout, "Lambda's guide recommends six times the timeout");
    }
}
