// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/internal/bench/cluster"
	"github.com/conversion-operator/conversion-operator/internal/bench/converters"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/pki"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

// The versions of the kind: objects are stored at one, and listed at the other.
const storedVersion, otherVersion = "v1", "v2"

// kind is a subject: a kind with its conversion.
type kind struct {
	subject, group string
	// serve writes what its webhook needs to a directory, and returns a program with its arguments, and the
	// path to call; nil for strategy None.
	serve func(dir, group string) (words []string, path string, err error)
	crd   *apiextensionsv1.CustomResourceDefinition
}

// none is the subject that ratios refer to.
const none = "strategy None"

func kinds() []*kind {
	return []*kind{
		{subject: none, group: "none.example.com"},
		{subject: converters.Ours, group: "ours.example.com", serve: serveOurs},
		{subject: converters.Typed, group: "typed.example.com", serve: func(_, group string) ([]string, string, error) {
			bench, err := os.Executable()
			return []string{bench, converters.ServeTypedCommand, "--group=" + group}, webhook.ConvertPath, err
		}},
	}
}

func serveOurs(dir, group string) ([]string, string, error) {
	ruleset, err := converters.Ruleset(group)
	if err != nil {
		return nil, "", err
	}
	text, err := ruleset.Marshal()
	if err != nil {
		return nil, "", err
	}
	hash := conversion.HashOf(text)
	binary, err := cluster.Binary("conversion-operator")
	err = errors.Join(err, os.WriteFile(filepath.Join(dir, conversion.StoredName("bench", hash)), conversion.Store(text), 0o600))
	return []string{binary, "serve", "--shared", "--metrics-bind-address=0", "--rulesets=" + dir}, webhook.ConvertPath + "/" + hash, err
}

// define starts the webhook, and creates the CRD. Without a webhook, both versions have the same schema:
// objects are pruned by none.
func (r *run) define(ctx context.Context, k *kind) (err error) {
	if k.crd, err = converters.Definition(k.group); err != nil {
		return err
	}
	if k.serve == nil {
		k.crd.Spec.Versions[1].Schema = k.crd.Spec.Versions[0].Schema
		return r.server.Client.Create(ctx, k.crd)
	}
	dir := filepath.Join(r.dir, k.group)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	authority, err := certify(dir)
	if err != nil {
		return err
	}
	words, path, err := k.serve(dir, k.group)
	if err != nil {
		return err
	}
	address, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	if err := r.nodes.Run(words[0], append(words[1:], "--bind-address="+address, "--certificates="+dir)...); err != nil {
		return err
	}
	k.crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: new("https://" + address + path), CABundle: authority},
			ConversionReviewVersions: []string{"v1"},
		},
	}
	return r.server.Client.Create(ctx, k.crd)
}

// certify writes a serving certificate to a directory, and returns that of its authority.
func certify(dir string) ([]byte, error) {
	authority, err := pki.NewAuthority("bench", time.Now(), 24*time.Hour)
	if err != nil {
		return nil, err
	}
	leaf, err := pki.IssueLeaf(authority, "127.0.0.1", time.Now(), 24*time.Hour)
	return authority.Certificate, errors.Join(err,
		os.WriteFile(filepath.Join(dir, "tls.crt"), leaf.Certificate, 0o600), os.WriteFile(filepath.Join(dir, "tls.key"), leaf.Key, 0o600))
}

// freeAddress returns an address that is free now.
func freeAddress(ctx context.Context) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
