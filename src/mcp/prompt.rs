//! Prompts: tasks that a person picks, written out for the model.

use rmcp::model::{Prompt, PromptArgument, PromptMessage, Role};

use super::catalog::Service;
use super::schema::Object;

/// A task.
struct Task {
    name: &'static str,
    title: &'static str,
    about: &'static str,
    argument: (&'static str, &'static str),
    /// The text for each service; `{}` stands for the argument.
    hosted: &'static str,
    local: &'static str,
}

/// Longest argument, in characters.
const MOST: usize = 500;

const TASKS: [Task; 3] = [
    Task {
        name: "triage_indicator",
        title: "Triage an indicator",
        about: "Is this address, domain, URL or hash known, and what does it point to?",
        argument: ("value", "The indicator, defanged or not."),
        hosted: "Triage the indicator {}. Look it up with `lookup`. If it is known, contained or its parent is known, read the \
                 nodes that it indicates with `node`, and the evidence that matters with `evidence`. Then tell me: the verdict; what it points to, and how sure that \
                 is; since when it is known and from which sources; what you would do. Name the marking (TLP) of everything that you repeat. If nothing is known, say \
                 so plainly and guess nothing.",
        local: "Triage the indicator {}. Look it up with `lookup`, and read the notes that mention it with `recall` and `note`. Then \
                tell me: whether it is known; what it points to, and how sure that is; from which notes; what you would do. If nothing is known, say so plainly and \
                guess nothing.",
    },
    Task {
        name: "brief_on_actor",
        title: "Brief me on an actor",
        about: "Who is this group, what does it use, whom does it target, what is new?",
        argument: ("name", "Name or alias of the actor."),
        hosted: "Brief me on the actor {}. Find it with `search`, read it with `node` to the end of its relationships, and ask `search` \
                 for its malware, techniques, targets and campaigns. Write at most one page: names and aliases, motives, targets, tools and techniques, recent activity, gaps in \
                 what is known. Cite node ids and sources, name the highest marking (TLP) that you used, and say what is disputed. Leave out what the memory does \
                 not say.",
        local: "Brief me on the actor {}. Read it with `entity`, what is around it with `graph`, and ask `recall` for its malware, techniques, \
                targets and campaigns. Write at most one page: names and aliases, motives, targets, tools and techniques, recent activity, gaps in what is known. Cite the ids of \
                notes. Leave out what the notes do not say.",
    },
    Task {
        name: "what_is_new",
        title: "What is new",
        about: "What came into the memory since a day, and what of it matters?",
        argument: ("since", "A day such as 2026-01-31, or an RFC 3339 time."),
        hosted: "Tell me what is new since {}. Read `changes` to its end, look at the nodes that matter with `node`, and give me a list by topic: new \
                 actors and campaigns, new vulnerabilities, indicators by what they point to, what was corrected or rejected. Name the marking (TLP) of each. If nothing \
                 changed, say so.",
        local: "Tell me what is new since {}. Read `changes` to its end, look at the notes that matter with `note`, and give me a list by topic: \
                actors and campaigns, vulnerabilities, indicators, what was replaced. If nothing changed, say so.",
    },
];

/// The prompts, always in the same order.
pub(super) fn list() -> Vec<Prompt> {
    let prompt = |task: &Task| {
        let (name, about) = task.argument;
        let argument = PromptArgument::new(name)
            .with_description(about)
            .with_required(true);
        Prompt::new(task.name, Some(task.about), Some(vec![argument])).with_title(task.title)
    };
    TASKS.iter().map(prompt).collect()
}

/// A prompt written out.
///
/// # Errors
/// In words, when there is no such prompt, or its argument is missing or too long.
pub(super) fn write(
    service: Service,
    name: &str,
    arguments: &Object,
) -> Result<(&'static str, PromptMessage), String> {
    let names = || TASKS.map(|task| task.name).join(", ");
    let task = TASKS.iter().find(|task| task.name == name);
    let task = task.ok_or_else(|| format!("there is no prompt {name:?}; there are {}", names()))?;
    let argument = task.argument.0;
    if let Some(other) = arguments.keys().find(|key| *key != argument) {
        return Err(format!(
            "{other}: is no argument of this prompt; it takes {argument}"
        ));
    }
    let value = arguments
        .get(argument)
        .and_then(|value| value.as_str())
        .map(str::trim);
    let value = value.filter(|value| !value.is_empty() && value.chars().nth(MOST).is_none());
    let value = value.ok_or_else(|| format!("{argument}: must be a text of 1 to {MOST} characters"))?;
    let text = match service {
        Service::Hosted => task.hosted,
        Service::Local => task.local,
    };
    // Quoted, so that a value does not read as a part of the task.
    let text = text.replacen("{}", &serde_json::Value::from(value).to_string(), 1);
    Ok((task.about, PromptMessage::new_text(Role::User, text)))
}
