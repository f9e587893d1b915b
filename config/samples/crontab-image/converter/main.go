// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command converter is a conversion webhook as authors of operators write it: Go types, conversion
// functions, and controller-runtime. It needs no access to the API.
package main

import (
	"flag"
	"net"
	"os"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	v1 "github.com/conversion-operator/conversion-operator/config/samples/crontab-image/converter/v1"
	"github.com/conversion-operator/conversion-operator/config/samples/crontab-image/converter/v1beta1"
)

func main() {
	group := flag.String("group", "example.com", "API group of the CronTabs")
	address := flag.String("bind-address", ":9443", "address to listen on, with TLS")
	certificates := flag.String("webhook-cert-path", "/tmp/k8s-webhook-server/serving-certs", "directory of tls.crt and tls.key, which are reloaded after changes")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := serve(*group, *address, *certificates); err != nil {
		ctrl.Log.Error(err, "The converter ends with an error")
		os.Exit(1)
	}
}

// serve converts until it is told to stop.
func serve(group, address, certificates string) error {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(schema.GroupVersion{Group: group, Version: "v1"}, &v1.CronTab{})
	scheme.AddKnownTypes(schema.GroupVersion{Group: group, Version: "v1beta1"}, &v1beta1.CronTab{})
	spoke := conversion.NewSpokeConverter(&v1beta1.CronTab{}, fromHub, toHub)
	converter, err := conversion.NewHubSpokeConverter(&v1.CronTab{}, spoke)(scheme)
	if err != nil {
		return err
	}
	registry := conversion.NewRegistry()
	if err := registry.RegisterConverter(schema.GroupKind{Group: group, Kind: "CronTab"}, converter); err != nil {
		return err
	}
	server := webhook.NewServer(webhook.Options{Host: host, Port: port, CertDir: certificates})
	server.Register("/convert", conversion.NewWebhookHandler(scheme, registry))
	return server.Start(ctrl.SetupSignalHandler())
}
