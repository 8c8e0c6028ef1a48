//! `wraith-cli`: WRAITH on the command line.

#![forbid(unsafe_code)]

mod address;
mod args;
mod backoff;
mod bench;
mod cipher;
mod cpu;
#[cfg_attr(not(all(feature = "af-xdp", target_os = "linux")), path = "no_device.rs")]
mod device;
mod dht;
mod dial;
mod discovery;
mod drive;
mod driver_pick;
mod duration;
mod failure;
mod foreign;
mod identity;
mod listen;
mod output;
mod ping;
mod sealed;
mod stop;
#[cfg_attr(not(feature = "trace"), path = "untraced.rs")]
mod trace;
mod transfer;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command, Common};
use failure::{Failure, Result};
use output::Output;
use stop::Stop;

fn main() -> ExitCode {
    let Cli { common, command } = Cli::parse();
    let output = Output { beside_data: command.has_data_on_stdout(), ..common.output() };
    let outcome = run(&common, output, command);
    match outcome {
        Ok(()) | Err(Failure::Interrupted) if output::stdout_is_lost() => ExitCode::FAILURE,
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output.failure(&failure);
            failure.exit_code()
        }
    }
}

fn run(common: &Common, output: Output, command: Command) -> Result<()> {
    common.device.check(common.driver, &command)?;
    common.trace.open(&command)?;
    match command {
        Command::Keygen(args) => {
            identity::keygen(output, args.output.or_else(|| common.identity.clone()), args.force)
        }
        Command::Id => identity::id(output, common.identity.clone()),
        Command::Listen(args) => listen::run(common, args, &Stop::on_ctrl_c()?),
        Command::Ping(args) => ping::run(common, &args, &Stop::on_ctrl_c()?),
        Command::Bench(args) => bench::run(common, &args, &Stop::on_ctrl_c()?),
        Command::Send(args) => transfer::send(common, &args, Stop::on_ctrl_c()?),
        Command::Receive(args) => transfer::receive(common, &args, Stop::on_ctrl_c()?),
        Command::Demo(args) => transfer::demo(common, &args, &Stop::on_ctrl_c()?),
        Command::Seal(args) => Stop::on_ctrl_c().and_then(|_| sealed::seal(common, output, &args)),
        Command::Open(args) => Stop::on_ctrl_c().and_then(|_| sealed::open(common, output, &args)),
        Command::Dht(args) => dht::run(common, output, args),
        Command::Drivers => {
            driver_pick::list(output, &common.device.host());
            Ok(())
        }
    }
}
