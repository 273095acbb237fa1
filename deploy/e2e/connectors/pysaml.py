"""A SAML identity provider and a service provider by pysaml2, on one address.

Settings come as JSON on the command line: address, port, cert, key (of TLS), signing_cert,
signing_key, metadata (files of the other side), user (name_id and attributes of the
identity provider's one user), sign_response, sign_assertion, encrypt_for (a certificate in PEM).

  /idp/metadata /idp/sso /idp/start?sp=&relay=   the identity provider; start is unsolicited
  /sp/metadata /sp/login /sp/acs                 the service provider; acs answers JSON
"""
import base64
import json
import ssl
import sys
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from saml2 import BINDING_HTTP_POST, BINDING_HTTP_REDIRECT
from saml2.client import Saml2Client
from saml2.config import IdPConfig, SPConfig
from saml2.metadata import entity_descriptor
from saml2.saml import NAME_FORMAT_UNSPECIFIED, NAMEID_FORMAT_EMAILADDRESS, NameID
from saml2.server import Server
from saml2.xmldsig import DIGEST_SHA256, SIG_RSA_SHA256

given = json.loads(sys.argv[1])
address = given["address"]
shared = {
    "key_file": given["signing_key"],
    "cert_file": given["signing_cert"],
    "encryption_keypairs": [{"key_file": given["signing_key"], "cert_file": given["signing_cert"]}],
    "metadata": {"local": given["metadata"]} if given["metadata"] else {},
    "accepted_time_diff": 5,
}
idp_config = IdPConfig().load({
    **shared,
    "entityid": address + "/idp/metadata",
    "service": {"idp": {
        "endpoints": {"single_sign_on_service": [(address + "/idp/sso", BINDING_HTTP_REDIRECT)]},
        "want_authn_requests_signed": True,
        "sign_response": given["sign_response"],
        "sign_assertion": given["sign_assertion"],
        "policy": {"default": {"lifetime": {"minutes": 5}, "name_form": NAME_FORMAT_UNSPECIFIED}},
    }},
})
sp_config = SPConfig().load({
    **shared,
    "entityid": address + "/sp/metadata",
    "allow_unknown_attributes": True,
    "service": {"sp": {
        "endpoints": {"assertion_consumer_service": [(address + "/sp/acs", BINDING_HTTP_POST)]},
        "allow_unsolicited": False,
        "authn_requests_signed": True,
        "want_response_signed": False,
        "want_assertions_signed": True,
        "name_id_format": NAMEID_FORMAT_EMAILADDRESS,
    }},
})
idp = Server(config=idp_config) if given["metadata"] else None
sp = Saml2Client(config=sp_config)
outstanding = {}


def respond(sp_entity, acs, in_response_to, relay):
    user = given["user"]
    message = idp.create_authn_response(
        identity=user["attributes"], in_response_to=in_response_to, destination=acs, sp_entity_id=sp_entity,
        name_id=NameID(format=NAMEID_FORMAT_EMAILADDRESS, text=user["name_id"]),
        authn={"class_ref": "urn:oasis:names:tc:SAML:2.0:ac:classes:Password", "authn_auth": address},
        sign_response=given["sign_response"], sign_assertion=given["sign_assertion"],
        encrypt_assertion=bool(given["encrypt_for"]), encrypt_cert_assertion=given["encrypt_for"] or None, encrypted_advice_attributes=False,
        sign_alg=SIG_RSA_SHA256, digest_alg=DIGEST_SHA256,
    )
    sent = idp.apply_binding(BINDING_HTTP_POST, str(message), acs, relay, response=True)
    return 200, "text/html", sent["data"]


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        where = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(where.query, keep_blank_values=True).items()}
        self.answer(lambda: self.get(where.path, query))

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        form = {name: values[0] for name, values in parse_qs(body, keep_blank_values=True).items()}
        self.answer(lambda: self.post(urlsplit(self.path).path, form))

    def get(self, path, query):
        if path == "/idp/metadata":
            return 200, "application/samlmetadata+xml", str(entity_descriptor(idp_config))
        if path == "/sp/metadata":
            return 200, "application/samlmetadata+xml", str(entity_descriptor(sp_config))
        if path == "/idp/sso":
            asked = idp.parse_authn_request(
                query["SAMLRequest"], BINDING_HTTP_REDIRECT, relay_state=query.get("RelayState"),
                sigalg=query.get("SigAlg"), signature=query.get("Signature"))
            about = idp.response_args(asked.message, [BINDING_HTTP_POST])
            return respond(about["sp_entity_id"], about["destination"], about["in_response_to"], query.get("RelayState", ""))
        if path == "/idp/start":
            _, acs = idp.pick_binding("assertion_consumer_service", [BINDING_HTTP_POST], "spsso", entity_id=query["sp"])
            return respond(query["sp"], acs, None, query.get("relay", ""))
        if path == "/sp/login":
            other = next(iter(sp.metadata.identity_providers()))
            request, sent = sp.prepare_for_authenticate(
                entityid=other, relay_state=query.get("relay", ""), binding=BINDING_HTTP_REDIRECT, sigalg=SIG_RSA_SHA256)
            outstanding[request] = "/"
            return 302, dict(sent["headers"])["Location"], ""
        return 404, "text/plain", "nothing here"

    def post(self, path, form):
        if path != "/sp/acs":
            return 404, "text/plain", "nothing here"
        response = sp.parse_authn_request_response(form["SAMLResponse"], BINDING_HTTP_POST, outstanding=outstanding)
        said = {
            "nameId": response.name_id.text, "format": response.name_id.format, "attributes": response.ava,
            "issuer": response.issuer(), "relayState": form.get("RelayState"),
            "response": base64.b64decode(form["SAMLResponse"]).decode(),
        }
        return 200, "application/json", json.dumps(said)

    def answer(self, work):
        try:
            status, kind, body = work()
        except Exception as failure:  # what pysaml2 refuses is shown with its reason
            traceback.print_exc()
            status, kind, body = 400, "text/plain", f"{type(failure).__name__}: {failure}"
        raw = body.encode()
        self.send_response(status)
        self.send_header("Location" if status == 302 else "Content-Type", kind)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


server = ThreadingHTTPServer(("127.0.0.1", given["port"]), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(given["cert"], given["key"])
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
