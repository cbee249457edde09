//! Many devices on one relay: what each costs, and whether a call notices the others.

use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::child::Running;
use crate::load::{self, Era, Target, Until};
use crate::roles::relay::Ready;
use crate::table::{Goals, Wanted, median, mib, micros, short};
use crate::trip::payload;
use crate::usage;

/// One relay with this many enrolled devices: alone with the first, then with all of them connected.
pub async fn run(devices: usize, rounds: usize, goals: &mut Goals) -> Result<()> {
    let mut relay = Running::role(&["relay", &devices.to_string()])?;
    let Ready { address, bearer, devices: tokens } = relay.hear().await?;
    let target = Target::new(address, "/mcp", Some(bearer), Era::Stateless);

    let alone = {
        let (_first, _) = connect(address, tokens.get(..1).context("no device")?).await?;
        trips(&target, rounds).await?
    };
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = usage::memory(&[relay.pid()]).pss;
    let (_fleet, storm) = connect(address, &tokens).await?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let each = (usage::memory(&[relay.pid()]).pss.saturating_sub(before)) as f64 / devices as f64 / 1024.0;
    let idle = usage::cpu(&[relay.pid()])?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let idle = (usage::cpu(&[relay.pid()])?.saturating_sub(idle)).as_secs_f64() / 5.0 * 100.0;
    let among = trips(&target, rounds).await?;

    println!(
        "\n{devices} devices on one relay: all ready after {} s, {} KiB each (PSS of the relay), {} % of a core while idle",
        short(storm),
        short(each),
        short(idle)
    );
    println!(
        "a call to one of them, p50 in µs at 1 / 8 in flight: alone {} / {}, among all {} / {}",
        short(alone[0]),
        short(alone[1]),
        short(among[0]),
        short(among[1])
    );
    println!("memory of the relay now: {} MB PSS", short(mib(usage::memory(&[relay.pid()]).pss)));
    goals.add(format!("{devices} devices: memory each"), Wanted::AtMost(24.0), each, " KiB");
    goals.add(format!("{devices} devices: reconnect storm ready"), Wanted::AtMost(30.0), storm, " s");
    goals.add(
        format!("call cost at 8 in flight, 1 → {devices} devices"),
        Wanted::AtMost(1.25),
        among[1] / alone[1],
        " ×",
    );
    Ok(())
}

async fn connect(address: std::net::SocketAddr, tokens: &[String]) -> Result<(Running, f64)> {
    let mut fleet = Running::role(&["fleet", &address.to_string()])?;
    fleet.tell(&serde_json::to_string(tokens)?).await?;
    let seconds = fleet.hear().await.context("the fleet")?;
    Ok((fleet, seconds))
}

async fn trips(target: &Target, rounds: usize) -> Result<[f64; 2]> {
    let (arguments, expect) = payload(200);
    let mut medians = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for (level, medians) in [1, 8].into_iter().zip(&mut medians) {
            let measured = load::run(target, &arguments, &expect, level, 50, Until::Time(Duration::from_millis(500)));
            medians.push(micros(measured.await?.p50));
        }
    }
    Ok(medians.map(median))
}
