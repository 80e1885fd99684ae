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
server.on("clientError", (error, socket) => {
  // A connection that ends in the middle of a message is how the gate passes on a broken body.
  if (!["ECONNRESET", "HPE_INVALID_EOF_STATE"].includes(error.code)) write({ broken: String(error.code) });
  socket.destroy();
});
server.listen(Number(port), "127.0.0.1");
