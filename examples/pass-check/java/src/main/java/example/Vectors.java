package example;

import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jose4j.json.JsonUtil;
import org.jose4j.jwk.JsonWebKeySet;

/** Prints what becomes of each pass of docs/vectors/passes.json, first the good ones. */
public final class Vectors {
  public static void main(String[] arguments) throws Exception {
    Map<String, Object> file = JsonUtil.parseJson(Files.readString(Path.of(arguments[0])));
    JsonWebKeySet jwks = new JsonWebKeySet(JsonUtil.toJson(map(file.get("jwks"))));
    Keys keys = kid -> Keys.among(jwks.getJsonWebKeys(), kid);
    Pass.Rules rules = new Pass.Rules(keys, (String) file.get("room"), 0, Set.of());
    for (String kind : List.of("good", "refused")) {
      for (Object one : (List<?>) file.get(kind)) {
        Map<String, Object> vector = map(one);
        Map<String, Object> said = map(vector.getOrDefault("presented", Map.of()));
        String ip = (String) said.get("ip");
        Binding.Shown shown =
            new Binding.Shown(
                (String) said.get("nonce"),
                ip == null ? null : InetAddress.getByName(ip),
                (String) said.get("user_agent"));
        try {
          Pass.check((String) vector.get("pass"), rules, (long) file.get("now"), shown);
          System.out.println("accepted");
        } catch (Pass.Refused refused) {
          System.out.println(refused.code);
        }
      }
    }
  }

  @SuppressWarnings("unchecked")
  private static Map<String, Object> map(Object value) {
    return (Map<String, Object>) value;
  }
}
