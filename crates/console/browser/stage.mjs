// Rooms and people to look at: a sale that runs, one before its draw, one paused, one that is
// over, and keys of every kind.

const inHours = (hours) => new Date(Math.round(Date.now() / 60_000) * 60_000 + hours * 3_600_000).toISOString();

export async function stage(server) {
  const put = (room, document) => server.operate("PUT", `/rooms/${room}`, document);
  await put("spring-tour", {
    title: "Spring tour", target_url: "https://shop.example/spring", queue_all: true, rate: "4/s", max_active: 150,
    lanes: [{ name: "main", weight: 3 }, { name: "members", weight: 1 }], claim_within: "8s", session_timeout: "25s", session_renewal: false,
  });
  await put("members-draw", {
    title: "Members’ draw", opens_at: inHours(-1), starts_at: inHours(3), ends_at: inHours(30), draw: true, max_active: 400, rate: "500/min",
  });
  await put("checkout", { title: "Checkout", rate: "20/s", max_active: 2000 });
  await put("merch", { title: "Merchandise", queue_all: true, rate: null, max_active: 40, claim: "on_admission", lanes: ["main", "members"] });
  await put("last-year", { title: "Autumn Lights Festival" });
  const people = await server.crowd("spring-tour", 140, (at) => ({ user_id: `user-${at}`, lane: at % 5 ? "main" : "members" }));
  await server.crowd("members-draw", 60);
  const inMerch = await server.crowd("merch", 25, (at) => ({ user_id: `fan-${at}` }));
  await server.operate("POST", "/rooms/merch/pause", { reason: "The payment provider is slow. We go on at 12:15; you keep your place." });
  await server.operate("POST", "/rooms/last-year/finish", { reason: "Sold out. Thank you for waiting." });
  await server.operate("POST", "/keys", { role: "operator", note: "Night shift, Anna" });
  const old = await server.operate("POST", "/keys", { role: "viewer", note: "Dashboard on the wall", expires_in: "30d" });
  await server.operate("POST", `/keys/${old.id}/rotate`, { overlap: "24h" });
  const lost = await server.operate("POST", "/keys", { role: "operator", note: "Laptop that was lost" });
  await server.operate("DELETE", `/keys/${lost.id}`);
  await server.operate("PATCH", "/rooms/spring-tour", { rate: "6/s", message: "Row A to F is sold out; plenty of others are left." });
  return {
    somebody: inMerch[6],
    /** People come, come in or do not, for so many seconds. */
    async run(seconds) {
      const until = Date.now() + seconds * 1000;
      // Every eighth does not come when it is their turn.
      let outside = people.map((it) => it.token).filter((_, at) => at % 8);
      for (let round = 0; Date.now() < until; round += 1) {
        const count = 3 + Math.round(4 * Math.sin(round / 5) ** 2);
        const late = await server.crowd("spring-tour", count, (at) => ({ user_id: `late-${round}-${at}`, lane: at % 4 ? "main" : "members" }));
        outside.push(...late.map((it) => it.token).filter((_, at) => (round + at) % 8));
        const came = await Promise.all(outside.slice(0, 40).map(async (token) => {
          const { status } = await fetch(`${server.public}/v1/rooms/spring-tour/claim`, { method: "POST", headers: { Authorization: `Bearer ${token}` } });
          return status === 200 ? token : null;
        }));
        outside = outside.filter((token) => !came.includes(token));
        await new Promise((done) => setTimeout(done, 700));
      }
    },
  };
}
