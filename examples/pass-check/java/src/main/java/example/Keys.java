package example;

import java.io.IOException;
import java.util.List;
import java.util.Set;
import org.jose4j.http.Get;
import org.jose4j.jwk.HttpsJwks;
import org.jose4j.jwk.JsonWebKey;
import org.jose4j.lang.JoseException;

/** Where published keys are found by their kid. */
public interface Keys {
  JsonWebKey find(String kid) throws Missing;

  /** Nobody can be checked now: our trouble, not the visitor's. */
  final class Missing extends Exception {
    Missing(Exception why) {
      super("the keys of the waiting room could not be fetched", why);
    }
  }

  static JsonWebKey among(List<JsonWebKey> keys, String kid) {
    // Kinds that we do not know are left out, symmetric ones too.
    Set<String> algs = Set.of("ES256", "RS256", "EdDSA");
    return keys.stream()
        .filter(key -> kid.equals(key.getKeyId()))
        .filter(key -> key.getAlgorithm() != null && algs.contains(key.getAlgorithm()))
        .filter(key -> key.getUse() == null || key.getUse().equals("sig"))
        .findFirst()
        .orElse(null);
  }

  /**
   * Fetched when first needed, again when the answer's Cache-Control says so, and when a pass
   * names a new key (at most every five seconds). If a fetch fails, the keys stay as they were.
   */
  static Keys remote(String url) {
    HttpsJwks jwks = new HttpsJwks(url);
    Get get = new Get();
    get.setConnectTimeout(5_000);
    get.setReadTimeout(5_000);
    jwks.setSimpleHttpGet(get);
    jwks.setDefaultCacheDuration(300);
    jwks.setRetainCacheOnErrorDuration(30);
    jwks.setRefreshReprieveThreshold(5_000);
    return kid -> {
      try {
        JsonWebKey found = among(jwks.getJsonWebKeys(), kid);
        if (found != null) return found;
        jwks.refresh();
        return among(jwks.getJsonWebKeys(), kid);
      } catch (IOException | JoseException why) {
        throw new Missing(why);
      }
    };
  }
}
