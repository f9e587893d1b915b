// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command converter is a conversion webhook as authors of operators write it: Go types, conversion
// functions, and controller-runtime. It needs no access to the API.
package main

import (
	"flag"
	"os"

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
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := serve(*group); err != nil {
		ctrl.Log.Error(err, "The converter ends with an error")
		os.Exit(1)
	}
}

// serve listens at port 9443, with the certificate in /tmp/k8s-webhook-server/serving-certs, which
// it reloads after changes.
func serve(group string) error {
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
	server := webhook.NewServer(webhook.Options{})
	server.Register("/convert", conversion.NewWebhookHandler(scheme, registry))
	return server.Start(ctrl.SetupSignalHandler())
}
