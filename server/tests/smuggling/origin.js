// An origin that writes down every request as it saw it, and says so to whoever asked.
// Log and answer are one line of JSON: which connection, method, address, the case, the body.
const http = require("http");
const fs = require("fs");
const [port, log] = process.argv.slice(2);
const write = line => fs.appendFileSync(log, JSON.stringify(line) + "\n");
const server = http.createServer((request, response) => {
  const chunks = [];
  request.on("data", chunk => chunks.push(chunk));
  request.on("error", () => {});
  request.on("end", () => {
    const seen = {
      method: request.method, url: request.url, case: request.headers["x-case"] || "",
      body: Buffer.concat(chunks).toString("latin1"), headers: request.headers,
      trailers: request.trailers,
    };
    write(seen);
    if (request.url === "/large") return response.end(Buffer.alloc(64 << 20));
    const text = JSON.stringify(seen);
    response.writeHead(200, { "X-Origin": "node", "Content-Length": Buffer.byteLength(text) });
    response.end(text);
  });
});
// What the gate sends must be clean: anything that Node cannot read is noted, and fails the test.
// A connection that ends in the middle of a message is how the gate passes on a broken body. Node
// knows only registered methods: another one is fine in a head that the gate wrote, which shows
// by what only the gate adds.
server.on("clientError", (error, socket) => {
  const packet = error.rawPacket ? error.rawPacket.toString("latin1") : "";
  const foreign = error.code === "HPE_INVALID_METHOD" && /^\S+ \S+ HTTP\/1\.1\r\n/.test(packet)
    && packet.includes("\r\nwaitroom-ticket: ") && !packet.includes(" /smuggled");
  if (!foreign && !["ECONNRESET", "HPE_INVALID_EOF_STATE"].includes(error.code))
    write({ broken: String(error.code), packet: packet.slice(0, 300) });
  socket.destroy();
});
server.listen(Number(port), "127.0.0.1");
