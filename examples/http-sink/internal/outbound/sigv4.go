package outbound

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/numaproj-contrib/numathrottle/internal/program"
)

// A SigV4 signs requests by AWS Signature Version 4, with AWS's library. It rereads the secrets for each request.
type SigV4 struct {
	// Region and Service are the scope of the signature, such as eu-central-1 and execute-api.
	Region, Service string
	// AccessKeyID names the key.
	AccessKeyID string
	// SecretKey is the secret access key, and SessionToken the optional one of temporary credentials.
	SecretKey, SessionToken program.Credential
}

// s3 is the service whose paths are signed unchanged, not escaped twice.
const s3 = "s3"

// sign implements RequestSigner.
func (s *SigV4) sign(req *http.Request, _ string, body []byte, now time.Time) error {
	secret, err := s.SecretKey.Read()
	if err != nil {
		return err
	}
	credentials := aws.Credentials{AccessKeyID: s.AccessKeyID, SecretAccessKey: secret}
	if s.SessionToken.IsSet() {
		if credentials.SessionToken, err = s.SessionToken.ReadHeader(); err != nil {
			return err
		}
	}
	sum := sha256.Sum256(body)
	hash := hex.EncodeToString(sum[:])
	req.Header.Set("X-Amz-Content-Sha256", hash)
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = s.Service == s3 })
	if err := signer.SignHTTP(req.Context(), credentials, req, hash, s.Service, s.Region, now.UTC()); err != nil {
		return errors.New("the request cannot be signed") // the library's own words may hold the URL
	}
	return nil
}
