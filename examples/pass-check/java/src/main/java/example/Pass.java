package example;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import org.jose4j.jwa.AlgorithmConstraints;
import org.jose4j.jwa.AlgorithmConstraints.ConstraintType;
import org.jose4j.jwk.JsonWebKey;
import org.jose4j.json.JsonUtil;
import org.jose4j.jws.JsonWebSignature;
import org.jose4j.lang.JoseException;

/**
 * A pass of a waiting room that was found good. Copy this file, Binding.java and Keys.java; they
 * need jose4j and nothing else.
 *
 * <p>The steps and their codes are those of docs/passes.md. jose4j checks the signature; the rest
 * is read here, because a general library does not know what we sign.
 */
public record Pass(String ticket, String room, long issuedAt, long expiresAt) {
  private static final int BYTES_MAX = 4096;
  private static final long TIME_MAX_S = 253402300799L; // the year 9999; more is milliseconds
  private static final long AHEAD_MAX_S = 300;
  private static final Pattern TICKET =
      Pattern.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}");

  /** What is asked of a pass. {@code unseen} names bindings that this server can never see. */
  public record Rules(Keys keys, String room, long leewayS, Set<String> unseen) {}

  /** Why a pass does not let anybody in, in the words of docs/passes.md. */
  public static final class Refused extends Exception {
    public final String code;

    Refused(String code) {
      super("the pass is refused: " + code, null, false, false);
      this.code = code;
    }
  }

  public static Pass check(String pass, Rules rules, long now, Binding.Shown shown)
      throws Refused, Keys.Missing {
    if (pass.length() > BYTES_MAX) throw new Refused("too_long");
    Map<String, Object> header = header(pass);
    if (header.containsKey("crit") || header.containsKey("b64")) throw new Refused("crit_unknown");
    if (!"JWT".equals(header.get("typ"))) throw new Refused("type_wrong");
    JsonWebKey key = header.get("kid") instanceof String kid ? rules.keys.find(kid) : null;
    if (key == null) throw new Refused("key_unknown");
    // The key says which algorithm it is for; the header never chooses.
    if (!key.getAlgorithm().equals(header.get("alg"))) throw new Refused("alg_wrong");
    Map<String, Object> claims = object(payload(pass, key), "claims_wrong");
    Pass read = read(claims);
    if (!read.room.equals(rules.room)) throw new Refused("room_other");
    if (read.issuedAt > now + AHEAD_MAX_S) throw new Refused("not_yet");
    if (now >= read.expiresAt + rules.leewayS) throw new Refused("expired");
    Binding.of(claims).check(read.ticket, shown, rules.unseen);
    return read;
  }

  private static Map<String, Object> header(String pass) throws Refused {
    String[] parts = pass.split("\\.", -1);
    if (parts.length != 3) throw new Refused("malformed");
    byte[][] decoded = new byte[3][];
    for (int at = 0; at < 3; at++) {
      try {
        decoded[at] = Base64.getUrlDecoder().decode(parts[at]);
      } catch (IllegalArgumentException notBase64) {
        throw new Refused("malformed");
      }
      // Decoding and encoding again gives the same text, or it had padding or stray bits.
      String again = Base64.getUrlEncoder().withoutPadding().encodeToString(decoded[at]);
      if (!again.equals(parts[at])) throw new Refused("malformed");
    }
    return object(decoded[0], "malformed");
  }

  private static byte[] payload(String pass, JsonWebKey key) throws Refused {
    try {
      JsonWebSignature signed = new JsonWebSignature();
      signed.setAlgorithmConstraints(
          new AlgorithmConstraints(ConstraintType.PERMIT, key.getAlgorithm()));
      signed.setCompactSerialization(pass);
      signed.setKey(key.getKey());
      if (signed.verifySignature()) return signed.getPayloadBytes();
    } catch (JoseException notSigned) {
      // A signature of the wrong shape is an exception, a wrong one is false: refused either way.
    }
    throw new Refused("signature_wrong");
  }

  private static Pass read(Map<String, Object> claims) throws Refused {
    if (claims.get("sub") instanceof String sub
        && TICKET.matcher(sub).matches()
        && claims.get("room") instanceof String room
        && claims.get("iat") instanceof Long iat
        && claims.get("exp") instanceof Long exp
        && 0 <= iat && iat < exp && exp <= TIME_MAX_S
        && !claims.containsKey("aud")
        && !claims.containsKey("nbf")) {
      return new Pass(sub, room, iat, exp);
    }
    throw new Refused("claims_wrong");
  }

  /** Refuses a name that is there twice, as jose4j's reader does. */
  private static Map<String, Object> object(byte[] text, String code) throws Refused {
    try {
      String decoded = new String(text, StandardCharsets.UTF_8);
      if (!Arrays.equals(decoded.getBytes(StandardCharsets.UTF_8), text)) throw new Refused(code);
      return JsonUtil.parseJson(decoded);
    } catch (JoseException | ClassCastException notAnObject) {
      throw new Refused(code);
    }
  }
}
