//! The `graph-oracle` program.

use std::process::ExitCode;

/// A case is many small allocations; the system's allocator spends a quarter of a campaign on them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    // Notes are written while files are read on other threads: standard error is not locked.
    let (mut out, mut complain) = (std::io::stdout().lock(), std::io::stderr());
    // On a terminal, and not against NO_COLOR and its like.
    let coloured = (is_coloured(&std::io::stdout()), is_coloured(&std::io::stderr()));
    let status =
        graph_oracle::cli::run_in_colour(&arguments, (&mut out, coloured.0), (&mut complain, coloured.1));
    ExitCode::from(status as u8)
}

fn is_coloured(stream: &impl anstream::stream::RawStream) -> bool {
    anstream::AutoStream::choice(stream) != anstream::ColorChoice::Never
}
