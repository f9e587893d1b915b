// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/conversion-operator/conversion-operator/controllers"
	"github.com/conversion-operator/conversion-operator/internal/operator/pages"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/migration"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/workload"
	"github.com/conversion-operator/conversion-operator/internal/operator/scheme"
	"github.com/conversion-operator/conversion-operator/internal/operator/tracing"
	"github.com/conversion-operator/conversion-operator/internal/process"
)

// managerOptions are the flags of the manager subcommand.
type managerOptions struct {
	namespace        string
	image            string
	account          string
	searcher         string
	level            string
	leaderElect      bool
	probeAddress     string
	metrics          string
	metricsCerts     string
	pod              string
	propagationDelay time.Duration
	proofLasts       time.Duration
	tracing          string
	sizeAdmission    bool
}

func newManagerCommand() *cobra.Command {
	options := managerOptions{}
	command := &cobra.Command{
		Use:   "manager",
		Short: "Reconcile ConversionPolicies",
		Long: "Reconcile ConversionPolicies. Conversions do not depend on the manager: while it is down, converter\n" +
			"pods continue to answer and migrations continue to rewrite objects; only changes wait.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return options.run(command.Context()) },
	}
	flags := command.Flags()
	flags.StringVar(&options.namespace, "namespace", os.Getenv("POD_NAMESPACE"),
		"namespace of the operator, where converter and migration pods run; default $POD_NAMESPACE")
	flags.StringVar(&options.image, "image", os.Getenv("CONVERSION_OPERATOR_IMAGE"),
		"image of converter and migration pods, the operator's own; default $CONVERSION_OPERATOR_IMAGE")
	flags.StringVar(&options.account, "converter-service-account", cmp.Or(os.Getenv("CONVERTER_SERVICE_ACCOUNT"), workload.DefaultConverterAccount),
		"ServiceAccount of converter pods, which has no rights; default $CONVERTER_SERVICE_ACCOUNT")
	flags.StringVar(&options.searcher, "dependents-service-account", os.Getenv("DEPENDENTS_SERVICE_ACCOUNT"),
		"ServiceAccount that may list all objects, as which the manager searches for dependents of a version before it stops serving or removes it; "+
			"empty if config/components/dependents is not installed; default $DEPENDENTS_SERVICE_ACCOUNT")
	flags.StringVar(&options.level, "migration-priority-level", cmp.Or(os.Getenv("MIGRATION_PRIORITY_LEVEL"), migration.DefaultPriorityLevel),
		"PriorityLevelConfiguration in which requests of migrations queue; default $MIGRATION_PRIORITY_LEVEL")
	flags.StringVar(&options.pod, "pod", os.Getenv("POD_NAME"),
		"name of the manager's own pod. Converter and migration pods inherit its pull secrets, node selector, tolerations, node affinity and priority class, "+
			"and an image of a user may not have its ServiceAccount; empty if the manager runs outside of the cluster; default $POD_NAME")
	flags.BoolVar(&options.leaderElect, "leader-elect", true,
		"let only one of several managers act at a time (each rollout runs several); set to false only if a second manager never starts before the first one has ended")
	flags.StringVar(&options.probeAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	flags.StringVar(&options.metrics, "metrics-bind-address", "0",
		"address of /metrics, with TLS, for clients with a token that may read it; 0 for none")
	flags.StringVar(&options.metricsCerts, "metrics-cert-path", "",
		"directory of tls.crt and tls.key for /metrics, which the manager reloads when they change; default a certificate that the manager creates at each start")
	flags.DurationVar(&options.propagationDelay, "propagation-delay", 0,
		"propagation delay: how long API servers may still use a CustomResourceDefinition as it was before a change. A migration waits for writes in the old storage version, "+
			"converter pods keep the previous rules, and the next certificate authority is trusted before it is used; set it only if no other client writes; "+
			"default twice the --request-timeout of the API servers, if they serve /flagz (Kubernetes 1.36 and later), and 2m0s at least")
	flags.DurationVar(&options.proofLasts, "proof-lifetime", observed.DefaultProofLifetime,
		"how long the result of a converter pod's last probe is valid: the manager probes the pod again after that time, ten times as often during a migration")
	flags.BoolVar(&options.sizeAdmission, "size-admission", true,
		"make API servers refuse objects whose preserved data does not fit into the annotations of another version, with a ValidatingWebhookConfiguration for each policy; "+
			"set to false if the operator may not write those: then one such object makes lists at the other version fail")
	flags.StringVar(&options.tracing, "tracing-endpoint", tracing.Endpoint(os.Getenv),
		"URL of an OpenTelemetry receiver (OTLP over gRPC; http://, or https:// for TLS) for traces; "+
			"default $OTEL_EXPORTER_OTLP_ENDPOINT; empty for none")
	return command
}

func (o managerOptions) validate() error {
	if o.namespace == "" {
		return errors.New("--namespace is empty: set it, or the environment variable POD_NAMESPACE")
	}
	if o.image == "" {
		return errors.New("--image is empty: set it, or the environment variable CONVERSION_OPERATOR_IMAGE")
	}
	if o.pod == "" && os.Getenv("KUBERNETES_SERVICE_HOST") != "" {
		return errors.New("--pod is empty in a pod: set it, or the environment variable POD_NAME")
	}
	if o.proofLasts < time.Second {
		return fmt.Errorf("--proof-lifetime is %s: it must be at least 1s", o.proofLasts)
	}
	return o.checkMetricsCerts()
}

func (o managerOptions) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	process.LimitMemory()
	collectEarly()
	traces, err := tracing.Start(ctx, tracing.Options{Endpoint: o.tracing, Service: "conversion-operator-manager", Version: versionText()})
	if err != nil {
		return err
	}
	defer traces.Stop(ctx)
	manager, err := o.newManager(traces)
	if err != nil {
		return err
	}
	settings := o.settings()
	if settings.Username, err = controllers.Username(ctx, manager.GetClient()); err != nil {
		return err
	}
	if err := controllers.ReadManagerPod(ctx, manager.GetAPIReader(), o.pod, &settings); err != nil {
		return err
	}
	reconciler := &controllers.ConversionPolicyReconciler{
		Client:   manager.GetClient(),
		Live:     manager.GetAPIReader(),
		Recorder: manager.GetEventRecorder(names.ManagedBy),
		Settings: settings,
		Prober:   controllers.NewProber(o.proofLasts),
		Checks: controllers.NewBackgroundChecks(
			manager.GetConfig(), manager.GetClient(), manager.GetAPIReader(), time.Now),
		Authorizer: controllers.NewAuthorizer(manager.GetClient(), time.Now),
		Now:        time.Now,
		Tracer:     traces.Tracer,
	}
	if o.propagationDelay == 0 {
		reconciler.RequestTimeout = controllers.NewRequestTimeout(manager.GetConfig(), time.Now)
		reconciler.RequestTimeout.Read(ctx)
	}
	if err := reconciler.SetupWithManager(ctx, manager); err != nil {
		return fmt.Errorf("set up the controller: %w", err)
	}
	if err := metrics.Registry.Register(controllers.PolicyMetrics{Policies: manager.GetCache(), Log: manager.GetLogger(), BuildVersion: versionText()}); err != nil {
		return fmt.Errorf("register the metrics of policies: %w", err)
	}
	if err := metrics.Registry.Register(controllers.FleetMetrics{Fleets: manager.GetCache(), Log: manager.GetLogger()}); err != nil {
		return fmt.Errorf("register the metrics of fleets: %w", err)
	}
	if err := checkConfinement(manager); err != nil {
		return err
	}
	if err := manager.Add(ctrlmanager.RunnableFunc(freeAtRest)); err != nil {
		return err
	}
	return manager.Start(ctx)
}

// checkConfinement has the manager check whether admission confines it.
func checkConfinement(manager ctrl.Manager) error {
	check := &controllers.Confinement{Client: manager.GetClient(), Log: manager.GetLogger()}
	if err := metrics.Registry.Register(check); err != nil {
		return fmt.Errorf("register the metric of the confinement: %w", err)
	}
	return manager.Add(check)
}

func (o managerOptions) settings() observed.Settings {
	return observed.Settings{Namespace: o.namespace, Image: o.image, ConverterAccount: o.account, DependentsAccount: o.searcher, PriorityLevel: o.level,
		PropagationDelay: o.propagationDelay, ProofLifetime: o.proofLasts, TracingEndpoint: o.tracing, SizeAdmission: o.sizeAdmission}
}

// If a leader disappears without releasing its lease, another one leads within 20
// seconds. The others see its last renewal up to one try late, wait for as long as a
// lease lasts, and try again; a try comes up to 2.2 retryPeriods after the one before.
// A leader that cannot renew ends well before another begins, so that two never act at
// the same time.
const (
	leaseDuration = 13 * time.Second
	renewDeadline = 9 * time.Second
	retryPeriod   = time.Second
)

func (o managerOptions) newManager(traces *tracing.Tracing) (ctrl.Manager, error) {
	kubeconfig, err := config.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	kubeconfig.Wrap(traces.Transport)
	pages.Bound(kubeconfig)
	kubeconfig.QPS = -1                  // priority and fairness on the API server is the better judge
	kubeconfig.DisableCompression = true // it costs an API server more than the network of a cluster
	// A CustomResourceDefinition is read in each reconciliation. API servers take several times as long to
	// write its schemas in JSON, and the manager to read them.
	if err := apiutil.AddToProtobufScheme(apiextensionsv1.AddToScheme); err != nil {
		return nil, err
	}
	manager, err := ctrl.NewManager(kubeconfig, ctrl.Options{
		Scheme:                        scheme.New(),
		Cache:                         controllers.CacheOptions(o.namespace),
		Client:                        controllers.ClientOptions(),
		MapperProvider:                controllers.NewMapper,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              "conversion-operator",
		LeaderElectionNamespace:       o.namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 new(leaseDuration),
		RenewDeadline:                 new(renewDeadline),
		RetryPeriod:                   new(retryPeriod),
		HealthProbeBindAddress:        o.probeAddress,
		Metrics:                       o.metricsOptions(),
	})
	if err != nil {
		return nil, fmt.Errorf("create the manager: %w", err)
	}
	return manager, errors.Join(
		manager.AddHealthzCheck("ping", healthz.Ping),
		manager.AddReadyzCheck("ping", healthz.Ping))
}

// checkMetricsCerts refuses to start without the configured certificate:
// the server would create its own, which no client can verify.
func (o managerOptions) checkMetricsCerts() error {
	if o.metricsCerts == "" {
		return nil
	}
	_, err := tls.LoadX509KeyPair(filepath.Join(o.metricsCerts, corev1.TLSCertKey), filepath.Join(o.metricsCerts, corev1.TLSPrivateKeyKey))
	if err != nil {
		return fmt.Errorf("--metrics-cert-path: %w", err)
	}
	return nil
}

// metricsOptions configure the metrics server. Without a certificate, it creates one
// at each start: the token keeps unauthorized clients away. Metrics do not need HTTP/2.
func (o managerOptions) metricsOptions() metricsserver.Options {
	return metricsserver.Options{
		BindAddress: o.metrics, SecureServing: true, FilterProvider: filters.WithAuthenticationAndAuthorization,
		CertDir: o.metricsCerts, CertName: corev1.TLSCertKey, KeyName: corev1.TLSPrivateKeyKey,
		TLSOpts: []func(*tls.Config){pki.RequireModernTLS, func(config *tls.Config) { config.NextProtos = []string{"http/1.1"} }},
	}
}
