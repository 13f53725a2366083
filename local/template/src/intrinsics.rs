use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::yaml::{Node, Value};
use crate::{Deployment, TemplateError};

/// Maximum depth of conditions that refer to other conditions. It limits the recursion. No real
/// template reaches it.
const MAX_DEPTH: usize = 64;

pub(crate) struct Resolver<'a> {
    deployment: &'a Deployment,
    defaults: BTreeMap<&'a str, Option<String>>,
    lists: BTreeSet<&'a str>,
    conditions: Option<&'a Node>,
    resources: BTreeMap<&'a str, &'a str>,
    /// Results of conditions. `None` means that the evaluation has begun but not ended. Each
    /// condition is evaluated only once. Otherwise the time would double with each link of a chain
    /// in which each condition refers to the next condition twice.
    known: RefCell<BTreeMap<String, Option<bool>>>,
}

impl<'a> Resolver<'a> {
    pub(crate) fn new(document: &'a Node, deployment: &'a Deployment) -> Result<Self, TemplateError> {
        let (mut defaults, mut lists) = (BTreeMap::new(), BTreeSet::new());
        for (name, parameter) in entries(document.child("Parameters")) {
            if let Some(Value::Scalar { text, .. }) = parameter.child("Type").map(|node| &*node.value)
                && text == "CommaDelimitedList"
            {
                lists.insert(name.as_str());
            }
            let default = match parameter.child("Default").map(|node| &*node.value) {
                Some(Value::Scalar { text, .. }) => Some(text.clone()),
                Some(_) => {
                    let message = "a default must be a scalar";
                    return Err(TemplateError::at(parameter.line, name, message));
                }
                None => None,
            };
            defaults.insert(name.as_str(), default);
        }
        if let Some(unknown) = deployment.parameters.keys().find(|name| !defaults.contains_key(name.as_str())) {
            let hint = crate::near::hint(unknown, defaults.keys().copied());
            let message = format!("there is no parameter {unknown}{hint}");
            return Err(TemplateError::at(document.line, "Parameters", message));
        }
        for (name, parameter) in entries(document.child("Parameters")) {
            if let (Some(given), Some(allowed)) = (deployment.parameters.get(name), parameter.child("AllowedValues")) {
                let allowed = list(allowed)?.iter().map(scalar).collect::<Result<Vec<_>, _>>()?;
                if !allowed.contains(&given.as_str()) {
                    let message = format!("must be {}, not {given}", allowed.join(" or "));
                    return Err(TemplateError::at(parameter.line, name, message));
                }
            }
        }
        let mut resources = BTreeMap::new();
        for (id, resource) in entries(document.child("Resources")) {
            if let Some(Value::Scalar { text, .. }) = resource.child("Type").map(|node| &*node.value) {
                resources.insert(id.as_str(), text.as_str());
            }
        }
        Ok(Self {
            deployment,
            defaults,
            lists,
            conditions: document.child("Conditions"),
            resources,
            known: RefCell::default(),
        })
    }

    /// Evaluates `node` until the result is not an intrinsic function. Returns `None` for
    /// `AWS::NoValue`.
    pub(crate) fn resolve(&self, node: &Node) -> Result<Option<Node>, TemplateError> {
        let Value::Call(name, argument) = &*node.value else {
            return Ok(Some(node.clone()));
        };
        let line = node.line;
        let text = match name.as_str() {
            "If" => {
                let (condition, yes, no) = match list(argument)? {
                    [condition, yes, no] => (scalar(condition)?, yes, no),
                    _ => return Err(wrong(line, name, "takes a condition and two values")),
                };
                let chosen = if self.condition(condition, line)? { yes } else { no };
                return self.resolve(chosen);
            }
            "Ref" if scalar(argument)? == "AWS::NoValue" => return Ok(None),
            "Ref" if self.lists.contains(scalar(argument)?) => {
                // CloudFormation trims each element of the list.
                let parts = self.reference(scalar(argument)?, line)?;
                let parts = parts.split(',').map(|part| Node::text(line, part.trim())).collect();
                return Ok(Some(Node::new(line, Value::List(parts))));
            }
            "Ref" => self.reference(scalar(argument)?, line)?,
            "Sub" => match &*argument.value {
                Value::List(_) => match list(argument)? {
                    [pattern, variables] => self.substitute(scalar(pattern)?, entries(Some(variables)), line)?,
                    _ => return Err(wrong(line, name, "takes a text and a map of variables")),
                },
                _ => self.substitute(scalar(argument)?, &[], line)?,
            },
            "GetAtt" => match &*argument.value {
                Value::List(_) => match list(argument)? {
                    [id, attribute] => self.attribute(scalar(id)?, scalar(attribute)?, line)?,
                    _ => return Err(wrong(line, name, "takes a resource and an attribute")),
                },
                _ => self.dotted(scalar(argument)?, line)?,
            },
            "Join" => self.join(argument, line)?,
            _ => return Err(wrong(line, name, "is not supported here")),
        };
        Ok(Some(Node::text(line, text)))
    }

    pub(crate) fn condition(&self, name: &str, line: usize) -> Result<bool, TemplateError> {
        let Some(node) = self.conditions.and_then(|all| all.child(name)) else {
            let message = format!("there is no condition {name}");
            return Err(TemplateError::at(line, "", message));
        };
        let known = self.known.borrow().get(name).copied();
        match known {
            Some(Some(holds)) => return Ok(holds),
            Some(None) => {
                let message = format!("the condition {name} refers to itself");
                return Err(TemplateError::at(node.line, "Conditions", message));
            }
            None if self.known.borrow().values().filter(|holds| holds.is_none()).count() >= MAX_DEPTH => {
                let message = format!("the condition {name} is nested too deeply");
                return Err(TemplateError::at(node.line, "Conditions", message));
            }
            None => {}
        }
        self.known.borrow_mut().insert(name.to_owned(), None);
        let holds = self.holds(node)?;
        self.known.borrow_mut().insert(name.to_owned(), Some(holds));
        Ok(holds)
    }

    fn holds(&self, node: &Node) -> Result<bool, TemplateError> {
        let line = node.line;
        let (name, argument) = match &*node.value {
            Value::Call(name, argument) => (name.as_str(), argument.as_ref()),
            Value::Map(entries) => match entries.as_slice() {
                [(key, argument)] if key == "Condition" => ("Condition", argument),
                _ => return Err(wrong(line, "Conditions", "needs a condition function")),
            },
            _ => return Err(wrong(line, "Conditions", "needs a condition function")),
        };
        match name {
            "Condition" => self.condition(scalar(argument)?, line),
            "Equals" => match list(argument)? {
                [left, right] => Ok(self.text(left)? == self.text(right)?),
                _ => Err(wrong(line, name, "takes two values")),
            },
            "Not" => match list(argument)? {
                [inner] => Ok(!self.holds(inner)?),
                _ => Err(wrong(line, name, "takes one condition")),
            },
            "And" | "Or" => {
                let mut any = false;
                let mut all = true;
                for inner in list(argument)? {
                    let holds = self.holds(inner)?;
                    any |= holds;
                    all &= holds;
                }
                Ok(if name == "And" { all } else { any })
            }
            "EachMemberEquals" => match list(argument)? {
                [members, value] => {
                    let (members, value) = (self.resolve(members)?, self.text(value)?);
                    let members = members.as_ref().map_or(Ok([].as_slice()), list)?;
                    members.iter().try_fold(true, |all, member| Ok(all && self.text(member)? == value))
                }
                _ => Err(wrong(line, name, "takes a list and a value")),
            },
            _ => Err(wrong(line, name, "is no condition function")),
        }
    }

    /// Rejects parameters that violate the template's `Rules`, as CloudFormation does before it
    /// changes anything.
    pub(crate) fn keep_rules(&self, document: &Node) -> Result<(), TemplateError> {
        for (name, rule) in entries(document.child("Rules")) {
            if rule.child("RuleCondition").map_or(Ok(true), |condition| self.holds(condition))? {
                for assertion in rule.child("Assertions").map_or(Ok([].as_slice()), list)? {
                    let Some(assert) = assertion.child("Assert") else {
                        return Err(TemplateError::at(assertion.line, name, "Assert is missing"));
                    };
                    if !self.holds(assert)? {
                        let description =
                            assertion.child("AssertDescription").map_or(Ok("a rule is broken"), scalar)?;
                        return Err(TemplateError::at(assertion.line, name, description));
                    }
                }
            }
        }
        Ok(())
    }

    fn text(&self, node: &Node) -> Result<String, TemplateError> {
        match self.resolve(node)? {
            Some(node) => scalar(&node).map(str::to_owned),
            None => Err(TemplateError::at(node.line, "", "a value is needed, not AWS::NoValue")),
        }
    }

    fn reference(&self, name: &str, line: usize) -> Result<String, TemplateError> {
        let deployment = self.deployment;
        if let Some(default) = self.defaults.get(name) {
            let given = deployment.parameters.get(name).or(default.as_ref());
            return match given {
                Some(value) => Ok(value.clone()),
                None if deployment.inspection => Ok(format!("${{{name}}}")),
                None => {
                    let message = format!("the parameter {name} has no value");
                    Err(TemplateError::at(line, "", message))
                }
            };
        }
        if self.resources.contains_key(name) {
            return Ok(self.physical_name(name).to_owned());
        }
        match name {
            "AWS::Region" => Ok(deployment.region.clone()),
            "AWS::AccountId" => Ok(deployment.account.clone()),
            "AWS::Partition" => Ok("aws".to_owned()),
            "AWS::URLSuffix" => Ok("amazonaws.com".to_owned()),
            "AWS::StackName" => Ok("bodega".to_owned()),
            _ => {
                let message = format!("there is no parameter or resource {name}");
                Err(TemplateError::at(line, "", message))
            }
        }
    }

    fn dotted(&self, path: &str, line: usize) -> Result<String, TemplateError> {
        match path.split_once('.') {
            Some((id, attribute)) => self.attribute(id, attribute, line),
            None => Err(wrong(line, "GetAtt", "takes Resource.Attribute")),
        }
    }

    /// Returns an attribute of a resource, in the form that CloudFormation documents as the return
    /// value of `GetAtt`.
    pub(crate) fn attribute(&self, id: &str, attribute: &str, line: usize) -> Result<String, TemplateError> {
        let Some(kind) = self.resources.get(id) else {
            let message = format!("there is no resource {id}");
            return Err(TemplateError::at(line, "", message));
        };
        let (region, account) = (&self.deployment.region, &self.deployment.account);
        let name = self.physical_name(id);
        match (*kind, attribute) {
            ("AWS::DynamoDB::Table", "Arn") => Ok(format!("arn:aws:dynamodb:{region}:{account}:table/{name}")),
            ("AWS::DynamoDB::Table", "StreamArn") => {
                Ok(format!("arn:aws:dynamodb:{region}:{account}:table/{name}/stream/latest"))
            }
            ("AWS::Events::EventBus", "Arn") => Ok(format!("arn:aws:events:{region}:{account}:event-bus/{name}")),
            ("AWS::Events::Rule", "Arn") => Ok(format!("arn:aws:events:{region}:{account}:rule/{name}")),
            ("AWS::S3::Bucket", "Arn") => Ok(format!("arn:aws:s3:::{name}")),
            ("AWS::SQS::Queue", "Arn") => Ok(format!("arn:aws:sqs:{region}:{account}:{name}")),
            ("AWS::OpenSearchService::Domain", "Arn") => Ok(format!("arn:aws:es:{region}:{account}:domain/{name}")),
            ("AWS::OpenSearchService::Domain", "DomainEndpoint") => Ok(format!("{name}.{region}.es.amazonaws.com")),
            ("AWS::Serverless::Function", "Arn") => Ok(format!("arn:aws:lambda:{region}:{account}:function:{name}")),
            _ => {
                let message = format!("{id}.{attribute} is not supported ({kind})");
                Err(TemplateError::at(line, "", message))
            }
        }
    }

    /// Replaces `${Name}` and `${Resource.Attribute}`. A name in `variables` takes precedence over
    /// parameters and resources. `${!Name}` becomes the literal `${Name}`.
    fn substitute(&self, pattern: &str, variables: &[(String, Node)], line: usize) -> Result<String, TemplateError> {
        let mut out = String::with_capacity(pattern.len());
        let mut rest = pattern;
        while let Some((before, after)) = rest.split_once("${") {
            out.push_str(before);
            let Some((name, tail)) = after.split_once('}') else {
                return Err(wrong(line, "Sub", "has a ${ without its }"));
            };
            if let Some(literal) = name.strip_prefix('!') {
                out.push_str("${");
                out.push_str(literal);
                out.push('}');
            } else if let Some((_, variable)) = variables.iter().find(|(known, _)| known == name) {
                out.push_str(&self.text(variable)?);
            } else if name.contains('.') {
                out.push_str(&self.dotted(name, line)?);
            } else if self.lists.contains(name) {
                return Err(wrong(line, "Sub", "takes no list"));
            } else {
                out.push_str(&self.reference(name, line)?);
            }
            rest = tail;
        }
        out.push_str(rest);
        Ok(out)
    }

    fn join(&self, argument: &Node, line: usize) -> Result<String, TemplateError> {
        let [separator, parts] = list(argument)? else {
            return Err(wrong(line, "Join", "takes a separator and a list"));
        };
        let Some(parts) = self.resolve(parts)? else { return Err(wrong(line, "Join", "takes a separator and a list")) };
        let parts = list(&parts)?.iter().map(|part| self.text(part)).collect::<Result<Vec<_>, _>>()?;
        Ok(parts.join(scalar(separator)?))
    }

    pub(crate) fn physical_name<'b>(&'b self, id: &'b str) -> &'b str {
        self.deployment.names.get(id).map_or(id, String::as_str)
    }
}

fn entries(node: Option<&Node>) -> &[(String, Node)] {
    match node.map(|node| &*node.value) {
        Some(Value::Map(entries)) => entries,
        _ => &[],
    }
}

fn list(node: &Node) -> Result<&[Node], TemplateError> {
    match &*node.value {
        Value::List(items) => Ok(items),
        _ => Err(TemplateError::at(node.line, "", format!("must be a list, not {}", node.kind()))),
    }
}

fn scalar(node: &Node) -> Result<&str, TemplateError> {
    match &*node.value {
        Value::Scalar { text, .. } => Ok(text),
        _ => Err(TemplateError::at(node.line, "", format!("must be a scalar, not {}", node.kind()))),
    }
}

fn wrong(line: usize, function: &str, message: &str) -> TemplateError {
    TemplateError::at(line, "", format!("{function} {message}"))
}
