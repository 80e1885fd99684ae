package example;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Executors;

/**
 * A shop that lets in only those who hold a pass.
 *
 * <p>WAITROOM_ROOM, WAITROOM_KEYS (…/.well-known/jwks.json), WAITROOM_PAGE (where to wait), PORT;
 * WAITROOM_DEV=1 over plain HTTP, where a browser takes no {@code __Host-} cookie.
 */
public final class Shop {
  private final Pass.Rules rules;
  private final String page;
  private final boolean dev;
  private final String cookieName;

  private Shop(Pass.Rules rules, String page, boolean dev) {
    this.rules = rules;
    this.page = page;
    this.dev = dev;
    this.cookieName = (dev ? "" : "__Host-") + "wr-pass-" + rules.room();
  }

  public static void main(String[] arguments) throws IOException {
    String room = System.getenv("WAITROOM_ROOM");
    Keys keys = Keys.remote(System.getenv("WAITROOM_KEYS"));
    // The nonce is a cookie of the waiting room's host.
    Pass.Rules rules = new Pass.Rules(keys, room, 0, Set.of("nonce"));
    String page = System.getenv("WAITROOM_PAGE");
    Shop shop = new Shop(rules, page, System.getenv("WAITROOM_DEV") != null);
    int port = Integer.parseInt(System.getenv().getOrDefault("PORT", "3000"));
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
    server.setExecutor(Executors.newFixedThreadPool(16));
    server.createContext("/", shop::answer);
    server.start();
  }

  private void answer(HttpExchange exchange) throws IOException {
    String arriving = null;
    List<String> rest = new ArrayList<>();
    String query = exchange.getRequestURI().getRawQuery();
    for (String pair : query == null ? new String[0] : query.split("&")) {
      if (pair.startsWith("wr_pass=")) {
        arriving = URLDecoder.decode(pair.substring(8), StandardCharsets.UTF_8);
      } else {
        rest.add(pair);
      }
    }
    long now = Instant.now().getEpochSecond();
    try {
      String pass = arriving != null ? arriving : carried(exchange);
      if (pass == null) throw new Pass.Refused("pass_missing");
      Pass good = Pass.check(pass, rules, now, shown(exchange));
      if (arriving == null) {
        send(exchange, 200, "Welcome, " + good.ticket() + ".\n"); // your shop goes here
        return;
      }
      // An address is copied, logged and sent as referrer: the pass moves to the cookie at once.
      String path = exchange.getRequestURI().getRawPath().replaceFirst("^[/\\\\]*", "/");
      String to = rest.isEmpty() ? path : path + "?" + String.join("&", rest);
      redirect(exchange, to, cookie(pass, good.expiresAt() - now));
    } catch (Pass.Refused refused) {
      refuse(exchange, refused);
    } catch (Keys.Missing missing) {
      System.err.println(missing.getMessage()); // never the pass
      exchange.getResponseHeaders().set("Retry-After", "5");
      send(exchange, 503, "");
    }
  }

  private void refuse(HttpExchange exchange, Pass.Refused refused) throws IOException {
    String accept = exchange.getRequestHeaders().getFirst("Accept");
    if (accept != null && accept.contains("text/html")) {
      redirect(exchange, page, cookie("", 0));
      return;
    }
    exchange.getResponseHeaders().set("Set-Cookie", cookie("", 0));
    exchange.getResponseHeaders().set("Content-Type", "application/json");
    exchange.getResponseHeaders().set("Cache-Control", "no-store");
    String body = "{\"code\":\"%s\",\"waiting_room\":\"%s\"}".formatted(refused.code, page);
    send(exchange, 403, body);
  }

  private void redirect(HttpExchange exchange, String to, String cookie) throws IOException {
    exchange.getResponseHeaders().set("Location", to);
    exchange.getResponseHeaders().set("Set-Cookie", cookie);
    exchange.getResponseHeaders().set("Cache-Control", "no-store");
    exchange.getResponseHeaders().set("Referrer-Policy", "no-referrer");
    send(exchange, 303, "");
  }

  private String carried(HttpExchange exchange) {
    String header = exchange.getRequestHeaders().getFirst("Waitroom-Pass");
    if (header != null) return header;
    for (String line : exchange.getRequestHeaders().getOrDefault("Cookie", List.of())) {
      for (String pair : line.split(";")) {
        if (pair.strip().startsWith(cookieName + "=")) {
          return pair.strip().substring(cookieName.length() + 1);
        }
      }
    }
    return null;
  }

  private String cookie(String value, long maxAge) {
    return "%s=%s; Path=/; Max-Age=%d; HttpOnly; SameSite=Lax%s"
        .formatted(cookieName, value, maxAge, dev ? "" : "; Secure");
  }

  /** Behind a proxy of yours, take the address from what that proxy says. */
  private static Binding.Shown shown(HttpExchange exchange) {
    String agent = exchange.getRequestHeaders().getFirst("User-Agent");
    return new Binding.Shown(null, exchange.getRemoteAddress().getAddress(), agent);
  }

  private static void send(HttpExchange exchange, int status, String body) throws IOException {
    byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
    exchange.sendResponseHeaders(status, bytes.length == 0 ? -1 : bytes.length);
    exchange.getResponseBody().write(bytes);
    exchange.close();
  }
}
