use super::*;

fn with_schedule(settings: &str) -> Result<Schedule, TemplateError> {
    let event = format!("Tidy: {{Type: Schedule, Properties: {{{settings}}}}}\n        Read:");
    Ok(small("Read:", &event)?.schedules.remove(0))
}

#[test]
fn without_further_settings_a_schedule_is_enabled_and_sends_no_input_of_its_own() {
    let schedule = with_schedule("Schedule: rate(5 minutes)").unwrap();
    assert_eq!((schedule.function.as_str(), schedule.event.as_str()), ("One", "Tidy"));
    assert_eq!((schedule.every, schedule.enabled, &schedule.input), (Duration::from_secs(300), true, &None));
    assert_eq!(schedule.rule(), "OneTidy");
    let fed = with_schedule("Schedule: rate(1 day), Name: tidy, Description: d, Input: '{\"deep\": true}'").unwrap();
    assert_eq!((fed.every, fed.input), (Duration::from_secs(86_400), Some(json!({"deep": true}))));
    for (settings, enabled) in
        [("Enabled: false", false), ("Enabled: true", true), ("State: DISABLED", false), ("State: ENABLED", true)]
    {
        let schedule = with_schedule(&format!("Schedule: rate(2 hours), {settings}")).unwrap();
        assert_eq!((schedule.every, schedule.enabled), (Duration::from_secs(7200), enabled), "{settings}");
    }
}

#[test]
fn the_error_of_an_invalid_or_unsupported_schedule_names_its_line() {
    for (settings, expected) in [
        ("Schedule: rate(1 minutes)", ", not rate(1 minutes)"),
        ("Schedule: rate(2 minute)", ", not rate(2 minute)"),
        ("Schedule: rate(0 minutes)", ", not rate(0 minutes)"),
        ("Schedule: rate(+2 minutes)", ", not rate(+2 minutes)"),
        ("Schedule: rate(30 seconds)", "must be rate(<n> <unit>) with minutes, hours or days"),
        ("Schedule: rate(99999 days)", ", not rate(99999 days)"),
        ("Schedule: 'cron(0 12 * * ? *)'", "cron expressions are not supported"),
        ("Schedule: every minute", ", not every minute"),
        ("Description: d", "Schedule is missing"),
        ("Schedule: rate(1 minute), Input: '{'", "the input is not JSON"),
        ("Schedule: rate(1 minute), Enabled: maybe", "must be true or false, not maybe"),
        ("Schedule: rate(1 minute), State: 'ON'", "must be ENABLED or DISABLED, not ON"),
        ("Schedule: rate(1 minute), Enabled: true, State: ENABLED", "not both"),
        (
            "Schedule: rate(1 minute), RetryPolicy: {MaximumRetryAttempts: 1}",
            "RetryPolicy: this property is not supported",
        ),
    ] {
        let error = with_schedule(settings).unwrap_err();
        assert!(error.to_string().contains(expected), "{settings} gave {error}");
        assert!(error.line().is_some(), "{error}");
    }
}

#[test]
fn the_real_schedules_run_every_minute_and_end_before_the_next_run() {
    let template = real();
    let scheduled: Vec<&str> = template.schedules.iter().map(|schedule| schedule.function.as_str()).collect();
    assert_eq!(scheduled, ["Cashier", "Courier", "Janitor", "Splitter"]);
    for schedule in &template.schedules {
        assert_eq!(schedule.rule(), format!("{}Minute", schedule.function));
        assert!(schedule.enabled && schedule.input.is_none());
        let function = template.function(&schedule.function).unwrap();
        assert!(function.timeout < schedule.every);
        assert_eq!(function.asynchronous.maximum_retries, 0, "the next scheduled run replaces a retry");
    }
}
