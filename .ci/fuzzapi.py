"""Makes one resource of each kind, so that requests find something, and runs schemathesis."""

import base64
import json
import pathlib
import re
import ssl
import subprocess
import sys
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
# One worker: the parser of CPython 3.11 is not safe in several threads. About half of the requests come from the coverage of each operation's schemas.
run = subprocess.run([
    work / "venv/bin/schemathesis", "--config-file", work / "schemathesis.toml", "run", document,
    "--phases", "examples,coverage,fuzzing", "--checks",
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,response_headers_conformance",
    "--max-examples", str(1 + requests // 2 // operations), "--workers", "1",
    # A page of the hosted login has a token, which each answer replaces.
    "--exclude-tag", "Hosted login", "--seed", "1", "--generation-deterministic",
    "--suppress-health-check", "all", "--warnings", "off", "--no-color", "--request-timeout", "30",
], check=False, stdout=subprocess.PIPE, text=True, cwd=work)
print(run.stdout)
sent = int((re.search(r"(\d+) generated", run.stdout) or [0, 0])[1])
if sent < requests:
    sys.exit(f"{sent} requests were sent, not {requests}")
print(f"{sent} requests, without a finding" if run.returncode == 0 else "there are findings")
sys.exit(run.returncode)
