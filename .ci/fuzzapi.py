"""Makes one resource of each kind, so that requests find something, and runs schemathesis."""

import base64
import hashlib
import hmac
import json
import pathlib
import re
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

work, requests = pathlib.Path(sys.argv[1]), int(sys.argv[2])
key = json.loads((work / "data/apikey.json").read_text())
base, authority = key["baseUrl"], key["caFile"]
context = ssl.create_default_context(cafile=authority)
credentials = base64.b64encode(f"{key['id']}:{key['secret']}".encode()).decode()


def call(path, body=None):
    url = path if path.startswith("https:") else base + path
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Authorization": "Basic " + credentials, "Content-Type": "application/json"})
    with urllib.request.urlopen(request, context=context) as answer:
        return json.load(answer)


tenant = call("/tenants/current")
application = call("/applications?createDirectory=true&expand=defaultAccountStoreMapping,samlPolicy", {"name": "Fuzz"})
mapping = application["defaultAccountStoreMapping"]
directory = call(mapping["accountStore"]["href"] + "?expand=accountSchema")
account = call(directory["href"] + "/accounts", {"email": "fuzz@example.test", "password": "Changeme1!"})
other = call("/directories", {"name": "Other"})
twin = call(other["href"] + "/accounts", {"email": "twin@example.test", "password": "Changeme1!"})
group = call(directory["href"] + "/groups", {"name": "Fuzz"})
organization = call("/organizations", {"name": "Fuzz", "nameKey": "fuzz"})
factor = call(account["href"] + "/factors", {"type": "google-authenticator"})
provider = call("/registeredSamlServiceProviders", {"assertionConsumerServiceUrl": "https://wiki.localhost/acs", "entityId": "urn:fuzz"})
identity = call(application["samlPolicy"]["identityProvider"]["href"])
label = call(application["webConfig"]["href"])["dnsLabel"]
found = {
    "tenantId": tenant, "applicationId": application, "directoryId": directory, "accountId": account, "groupId": group,
    "organizationId": organization, "factorId": factor, "accountStoreMappingId": mapping, "samlServiceProviderId": provider,
    "otherAccountId": twin, "samlIdentityProviderId": identity, "samlPolicyId": application["samlPolicy"],
    "ownSamlServiceProviderId": application["samlPolicy"]["serviceProvider"], "schemaId": directory["accountSchema"],
    "fieldId": call(directory["accountSchema"]["href"] + "/fields")["items"][0],
    "accountLinkingPolicyId": application["accountLinkingPolicy"], "webConfigId": application["webConfig"],
    "idSiteId": call(tenant["idSites"]["href"])["items"][0],
    "emailTemplateId": call(f"{base}/passwordPolicies/{directory['href'].rsplit('/', 1)[1]}/resetEmailTemplates")["items"][0],
    "groupMembershipId": call("/groupMemberships", {"account": {"href": account["href"]}, "group": {"href": group["href"]}}),
    "accountLinkId": call("/accountLinks", {"leftAccount": {"href": account["href"]}, "rightAccount": {"href": twin["href"]}}),
    "organizationAccountStoreMappingId": call(
        "/organizationAccountStoreMappings",
        {"organization": {"href": organization["href"]}, "accountStore": {"href": other["href"]}, "isDefaultAccountStore": True}),
    "phoneId": call(account["href"] + "/phones", {"number": "+12675555555"}),
    "challengeId": call(factor["href"] + "/challenges", {}),
    "apiKeyId": call(account["href"] + "/apiKeys", {}),
    "samlServiceProviderRegistrationId": call(identity["samlServiceProviderRegistrations"]["href"], {"serviceProvider": {"href": provider["href"]}}),
    "samlIdentityProviderMetadataId": identity["metadata"], "certificateId": identity["x509SigningCert"],
    "attributeStatementMappingRulesId": identity["attributeStatementMappingRules"],
}

# The examples of the document name the resources that were made.
document = (work / "openapi.json")
text = json.dumps(json.loads(urllib.request.urlopen(base[: -len("/v1")] + "/openapi.json", context=context).read()))
parameters = json.loads(text)["components"]["parameters"]
known = {"dnsLabel": label}
for name, resource in found.items():
    id = resource["href"].rsplit("/", 1)[1]
    if name in parameters:
        text = text.replace(parameters[name]["example"], id)
        known[name] = id
text = text.replace(f'/{parameters["dnsLabel"]["example"]}/', f"/{label}/")
document.write_text(text)

# Deleting is tried on addresses that hold nothing.
lines = [f'"path.{name}" = "{id}"' for name, id in known.items()]
(work / "schemathesis.toml").write_text("\n".join([
    f'base-url = "{base[: -len("/v1")]}"', f'tls-verify = "{authority}"', "continue-on-failure = true",
    "[auth.basic]", f'username = "{key["id"]}"', f'password = "{key["secret"]}"',
    "[parameters]", *lines,
    "[[operations]]", 'include-method = ["DELETE"]', "parameters = {%s}" % ", ".join(f'"path.{name}" = "0{id[1:]}"' for name, id in known.items() if name in found),
]))
operations = len(re.findall(r'"operationId"', text))


def run(config, *choice):
    """Returns how many requests were sent, and whether there were findings."""
    # One worker: the parser of CPython 3.11 is not safe in several threads. About half of the requests come from the coverage of each operation's schemas.
    ended = subprocess.run([
        work / "venv/bin/schemathesis", "--config-file", work / config, "run", document,
        "--phases", "examples,coverage,fuzzing", "--checks",
        "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,response_headers_conformance",
        "--max-examples", str(1 + requests // 2 // operations), "--workers", "1", *choice, "--seed", "1", "--generation-deterministic",
        "--suppress-health-check", "all", "--warnings", "off", "--no-color", "--request-timeout", "30",
    ], check=False, stdout=subprocess.PIPE, text=True, cwd=work)
    print(ended.stdout)
    return int((re.search(r"(\d+) generated", ended.stdout) or [0, 0])[1]), ended.returncode != 0


def session():
    """Begins a hosted login as a browser does, gives the password, and returns the session token of the second step."""

    def encoded(data):
        return base64.urlsafe_b64encode(data).rstrip(b"=")

    callback = "https://app.localhost/callback"
    call(application["href"], {"authorizedCallbackUris": [callback]})
    claims = {"iat": int(time.time()), "iss": key["id"], "sub": application["href"], "cb_uri": callback, "jti": str(time.time_ns()),
              "require_mfa": ["google-authenticator", "sms"]}
    signed = encoded(b'{"alg":"HS256","typ":"JWT"}') + b"." + encoded(json.dumps(claims).encode())
    signed += b"." + encoded(hmac.new(key["secret"].encode(), signed, hashlib.sha256).digest())

    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_):
            return None

    browser = urllib.request.build_opener(Stay, urllib.request.HTTPSHandler(context=context))
    try:
        browser.open(base[: -len("/v1")] + "/sso?jwtRequest=" + signed.decode())
    except urllib.error.HTTPError as redirect:
        token = redirect.headers["Location"].split("jwt=")[1]
    body = json.dumps({"type": "basic", "value": base64.b64encode(b"fuzz@example.test:Changeme1!").decode()}).encode()
    login = urllib.request.Request(application["href"] + "/loginAttempts", body, {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
    with browser.open(login) as answer:
        return answer.headers["Authorization"]


# The calls of hosted pages have a session token in place of the key, and are relative to /v1.
pages = (work / "pages.toml")
pages.write_text("\n".join([
    f'base-url = "{base}"', f'tls-verify = "{authority}"', "continue-on-failure = true",
    f'headers = {{ Authorization = "{session()}" }}', "[parameters]", *lines,
]))
hosted = run("pages.toml", "--include-tag", "Hosted login")
managed = run("schemathesis.toml", "--exclude-tag", "Hosted login")
sent = hosted[0] + managed[0]
if sent < requests or hosted[0] == 0:
    sys.exit(f"{sent} requests were sent, {hosted[0]} of them by hosted pages, not {requests}")
print("there are findings" if hosted[1] or managed[1] else f"{sent} requests, without a finding")
sys.exit(hosted[1] or managed[1])
