//! The named questions, as queries in SQL.

/// A named question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// Name of the question on the command line.
    pub name: &'static str,
    /// The query in SQL. It begins with comments, the first of which is [`Question::about`].
    pub sql: &'static str,
}

impl Question {
    /// Returns the question's description, one line.
    pub fn about(&self) -> &'static str {
        self.sql.lines().next().unwrap_or_default().trim_start_matches("-- ")
    }

    /// Returns the explanation of the answer's columns: the other comments.
    pub fn note(&self) -> String {
        let comments = self.sql.lines().skip(1).map_while(|line| line.strip_prefix("--"));
        comments.map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
    }
}

macro_rules! questions {
    ($($name:literal),*) => {
        [$(Question { name: $name, sql: include_str!(concat!("../questions/", $name, ".sql")) }),*]
    };
}

/// All questions, the default first.
pub const QUESTIONS: [Question; 8] =
    questions!["expensive", "new", "odd-hosts", "history", "savings", "services", "releases", "totals"];

/// The name that the first question had before.
const FORMER: &str = "dearest";

/// Returns the question with this name.
pub fn question(name: &str) -> Option<Question> {
    let name = if name == FORMER { QUESTIONS[0].name } else { name };
    QUESTIONS.into_iter().find(|question| question.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_question_has_a_description() {
        for question in QUESTIONS {
            assert!(question.about().len() > 20 && question.sql.starts_with("-- "), "{}", question.name);
            assert_eq!(super::question(question.name), Some(question));
        }
        assert_eq!((question("x"), question(FORMER)), (None, question("expensive")));
    }
}
