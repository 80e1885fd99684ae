package example;

import java.net.Inet4Address;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;

/** What ties a pass to the browser that it was given to: the claim {@code bnd}. */
record Binding(Map<String, Object> said) {

  /** What a request shows of where it comes from; null where that cannot be known. */
  public record Shown(String nonce, InetAddress ip, String userAgent) {}

  /** Whatever is bound must be understood: an unknown member means that the pass is refused. */
  static Binding of(Map<String, Object> claims) throws Pass.Refused {
    if (!claims.containsKey("bnd")) return new Binding(Map.of());
    if (!(claims.get("bnd") instanceof Map<?, ?> bnd)) throw new Pass.Refused("claims_wrong");
    Map<String, Object> said = new HashMap<>();
    for (Map.Entry<?, ?> member : bnd.entrySet()) {
      boolean known =
          switch ((String) member.getKey()) {
            case "nonce", "ip", "ua" -> member.getValue() instanceof String;
            case "ip_bits" -> member.getValue() instanceof Long bits && 0 <= bits && bits <= 255;
            default -> false;
          };
      if (!known) throw new Pass.Refused("claims_wrong");
      said.put((String) member.getKey(), member.getValue());
    }
    if (said.containsKey("ip") != said.containsKey("ip_bits")) {
      throw new Pass.Refused("claims_wrong");
    }
    return new Binding(said);
  }

  void check(String ticket, Shown shown, Set<String> unseen) throws Pass.Refused {
    same("nonce", ticket, bytes(shown.nonce), unseen);
    boolean both = said.containsKey("ip") && shown.ip != null;
    same("ip", ticket, both ? network(shown.ip, (long) said.get("ip_bits")) : null, unseen);
    same("ua", ticket, bytes(shown.userAgent), unseen);
  }

  private void same(String kind, String ticket, byte[] value, Set<String> unseen)
      throws Pass.Refused {
    if (!said.containsKey(kind) || unseen.contains(kind)) return;
    if (value == null) throw new Pass.Refused("binding_missing");
    try {
      MessageDigest sha = MessageDigest.getInstance("SHA-256");
      sha.update(bytes("waitroom/v1/bind/" + kind + "\0" + ticket + "\0"));
      byte[] digest = Arrays.copyOf(sha.digest(value), 16);
      String text = Base64.getUrlEncoder().withoutPadding().encodeToString(digest);
      if (!MessageDigest.isEqual(bytes(text), bytes((String) said.get(kind)))) {
        throw new Pass.Refused("binding_wrong");
      }
    } catch (NoSuchAlgorithmException impossible) {
      throw new AssertionError("every Java has SHA-256", impossible);
    }
  }

  /** Family, prefix length, and the address with all later bits cleared. */
  private static byte[] network(InetAddress ip, long bits) {
    byte[] address = ip.getAddress(); // Java turns ::ffff:192.0.2.7 into IPv4 by itself
    byte[] network = new byte[2 + address.length];
    network[0] = (byte) (ip instanceof Inet4Address ? 4 : 6);
    network[1] = (byte) bits;
    for (int at = 0; at < address.length; at++) {
      long kept = Math.max(0, Math.min(8, bits - 8L * at));
      network[2 + at] = (byte) (address[at] & (0xff00 >> kept));
    }
    return network;
  }

  private static byte[] bytes(String text) {
    return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
  }
}
