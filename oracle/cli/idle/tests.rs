//! Each row is met beside what makes it count for nothing, and not beside what makes it count.

use super::{GivenArguments, LIMITS, ROWS, refuse};
use crate::cli::Arguments;
use crate::limits::{Limit, Limits};
use clap::CommandFactory;

/// A line of arguments in which the flags count for nothing, and one in which they count.
const EXAMPLES: &[(&str, &str)] = &[
    ("check bucketing B --worker-seconds 1", "check bucketing B --worker W --worker-seconds 1"),
    ("check bucketing B --worker-start 1", "check bucketing B --worker W --worker-start 1"),
    ("check bucketing B --worker-memory 1GiB", "check bucketing B --worker W --worker-memory 1GiB"),
    ("check bucketing B --worker-answer 1GiB", "check bucketing B --worker W --worker-answer 1GiB"),
    ("run bucketing B -o A --worker-seconds 1", "run bucketing B -o A --worker W --worker-seconds 1"),
    ("run bucketing B -o A --worker-start 1", "run bucketing B -o A --worker W --worker-start 1"),
    ("run bucketing B -o A --worker-memory 1GiB", "run bucketing B -o A --worker W --worker-memory 1GiB"),
    ("run bucketing B -o A --worker-answer 1GiB", "run bucketing B -o A --worker W --worker-answer 1GiB"),
    ("reduce C --worker-seconds 1", "reduce C --worker W --worker-seconds 1"),
    ("reduce C --worker-start 1", "reduce C --worker W --worker-start 1"),
    ("reduce C --worker-memory 1GiB", "reduce C --worker W --worker-memory 1GiB"),
    ("reduce C --worker-answer 1GiB", "reduce C --worker W --worker-answer 1GiB"),
    ("fuzz repair --worker-seconds 1", "fuzz repair --worker W --worker-seconds 1"),
    ("fuzz repair --worker-start 1", "fuzz repair --against W --worker-start 1"),
    ("fuzz repair --worker-memory 1GiB", "fuzz repair --worker W --worker-memory 1GiB"),
    ("fuzz repair --worker-answer 1GiB", "fuzz repair --worker W --worker-answer 1GiB"),
    ("check bucketing B A --worker W", "check bucketing B --worker W"),
    ("check bucketing B A --python m:f", "check bucketing B --python m:f --worker-seconds 1"),
    ("check bucketing B A --candidate K1", "check partition --replay B A --candidate K1"),
    ("check schedule B --values off", "check repair B --values off"),
    ("check memory B --element-limit 5", "check bucketing B --element-limit 5"),
    ("reduce C --pass schedule --values off", "reduce C --pass repair --values off"),
    ("fuzz memory --values off", "fuzz all --values off"),
    ("check execute B --values off", "check execute B --element-limit 5"),
    ("reduce C --pass execute --values off", "reduce C --values off"),
    ("fuzz execute --values agree", "fuzz partition --values agree"),
    (
        "check bucketing B --values off --element-limit 5",
        "check bucketing B --values execute --element-limit 5",
    ),
    ("check repair B A --unrepaired U", "check bucketing B A --unrepaired U"),
    ("check bucketing B --unrepaired U", "check bucketing B A --unrepaired U"),
    ("check bucketing B A A --unrepaired U", "check bucketing B A --unrepaired U"),
    ("check repair B A --allow signature", "check rewrite B A --allow signature"),
    ("check repair B A --demand strides", "check rewrite B A --demand strides"),
    ("check repair B A --second C", "check rewrite B A --second C"),
    ("check repair B --order O", "check memory B --order O"),
    ("check rewrite --replay B A --from R", "check rewrite B A --from R"),
    ("check rewrite --replay B A --groups G", "check rewrite B A --groups G"),
    ("check repair B --snapshot S", "check memory B --snapshot S"),
    ("check repair B --verbose --format json", "check repair B --verbose"),
    ("run schedule B -o A --unrepaired U", "run bucketing B -o A --unrepaired U"),
    ("run partition B -o A --rank 1", "run schedule B -o A --rank 1"),
    ("run repair B -o A --rank 1", "run repair B -o A --rank 1 --worker W"),
    ("run bucketing B -o A --format json", "run partition B -o A --format json"),
    ("fuzz schedule --ranks one", "fuzz bucketing --ranks one"),
    ("score --edits B --seeds 3", "score K1 --seeds 3"),
    ("score --edits B --cases 3", "score K1 --cases 3"),
    ("score --edits B --show all --format json", "score --edits B --show all"),
    ("smoke --skip-without-gpu", "smoke --skip-without-gpu --device cuda"),
    ("smoke --table --format json", "smoke --table"),
    ("lifecycle --graph B --assert", "lifecycle E --assert"),
    ("lifecycle --graph B --format json", "lifecycle E --format json"),
    ("simulate B --one-stream --flight D", "simulate B --one-stream"),
    ("simulate B --messages buffered --flight D", "simulate B --messages buffered"),
    ("check bucketing B --html - --format json", "check bucketing B --html P --format json"),
    ("simulate B --html - --format json", "simulate B --html P --format json"),
    ("trace T --html - --format json", "trace T --html P --format json"),
    ("fuzz bucketing --html - --format json", "fuzz bucketing --html P --format json"),
    ("results T --html - --format json", "results T --html P --format json"),
    ("show B --html P --format svg", "show B --format svg"),
    ("show B --html P --output T", "show B --html P"),
    ("score --edits B A --html P", "score --html P"),
    ("score --reductions --html P", "score --html P"),
    ("fuzz bucketing --against OLD --html P", "fuzz bucketing --html P"),
    ("simulate B --html P --flight D", "simulate B --html P"),
    ("simulate B --trace T --flight D", "simulate B --trace T"),
    ("simulate --ranks 0,0 --flight D", "simulate B B --ranks 0,1 --flight D"),
    ("simulate B --ranks 0,0", "simulate B B --ranks 0,1"),
];

fn said(line: &str) -> Result<(), String> {
    let words = std::iter::once("graph-oracle").chain(line.split(' '));
    let matches = Arguments::command().try_get_matches_from(words).expect(line);
    refuse(&matches, &[])
}

#[test]
fn each_flag_counts_or_is_refused() {
    let mut met = Vec::new();
    for (idle, heeded) in EXAMPLES {
        let why = said(idle).expect_err(idle);
        assert_eq!(said(heeded), Ok(()), "{heeded}");
        let command = idle.split(' ').next().unwrap();
        let row = |row: &&super::Row| row.commands.contains(&command) && why.ends_with(row.why);
        for row in ROWS.iter().filter(row) {
            let flags =
                row.flags.iter().filter(|flag| why.starts_with(&format!("--{}:", flag.replace('_', "-"))));
            met.extend(flags.map(|flag| (row.why, command, *flag)));
        }
    }
    let command_line = Arguments::command();
    for row in ROWS {
        for command in row.commands {
            let has = command_line.find_subcommand(command).unwrap();
            for flag in row.flags.iter().filter(|flag| has.get_arguments().any(|arg| arg.get_id() == **flag))
            {
                // A flag that another command of the row has.
                assert!(
                    met.contains(&(row.why, *command, *flag)),
                    "no example of {command} --{flag}: {}",
                    row.why
                );
            }
        }
        for flag in row.flags {
            let is_of = |command: &&str| {
                let found = command_line.find_subcommand(command).unwrap();
                found.get_arguments().any(|arg| arg.get_id() == *flag)
            };
            assert!(row.commands.iter().any(is_of), "nothing has --{flag}");
        }
    }
}

#[test]
fn each_limit_that_can_be_set_is_read_by_some_command() {
    let all = Arguments::command();
    for &limit in Limit::ALL {
        let readers = LIMITS.iter().find(|(known, _)| *known == limit).map_or(&[][..], |(_, by)| by);
        assert_eq!(readers.is_empty(), limit.is_fixed(), "{limit}");
        assert!(Limits::default().with(limit, limit.standard()).is_ok() != limit.is_fixed(), "{limit}");
        for command in readers {
            assert!(all.find_subcommand(command).is_some(), "{command}");
        }
        for command in all.get_subcommands().filter(|_| !limit.is_fixed()) {
            let line = match command.get_name() {
                "man" | "rules" | "score" | "smoke" | "worker" => command.get_name().to_string(),
                "fuzz" => "fuzz repair".to_string(),
                "run" => "run repair B -o A".to_string(),
                "check" => "check repair B".to_string(),
                "completions" => "completions bash".to_string(),
                "convert" => "convert A B".to_string(),
                "lifecycle" => "lifecycle E".to_string(),
                "keep" => "keep X T".to_string(),
                name => format!("{name} X"),
            };
            let words = std::iter::once("graph-oracle").chain(line.split(' '));
            let matches = Arguments::command().try_get_matches_from(words).expect(&line);
            let is_read = refuse(&matches, &[(limit, limit.standard())]).is_ok();
            assert_eq!(is_read, readers.contains(&command.get_name()), "{line} --limit {limit}");
        }
    }
}

/// What a command does not have is not given.
#[test]
fn what_a_command_lacks_is_not_there() {
    let matches = Arguments::command().try_get_matches_from(["graph-oracle", "rules"]).unwrap();
    let given = GivenArguments(matches.subcommand().unwrap().1);
    assert!(!given.has("worker") && given.word("pass").is_empty() && given.count("graphs") == 0);
}
