use futures::TryStreamExt;
use pulsar::{Consumer, Pulsar, SubType, TokioExecutor};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let service_url = std::env::args().nth(1).expect("the service URL");
    let pulsar: Pulsar<_> = Pulsar::builder(service_url, TokioExecutor).build().await?;
    let mut consumer: Consumer<String, _> = pulsar
        .consumer()
        .with_topic("rust-orders")
        .with_subscription("shop")
        .with_subscription_type(SubType::Exclusive)
        .build()
        .await?;
    let mut producer = pulsar.producer().with_topic("rust-orders").build().await?;
    producer.send_non_blocking("an order").await?.await?;
    let message = consumer.try_next().await?.expect("an order");
    println!("{}", message.deserialize()?);
    consumer.ack(&message).await?;
    Ok(())
}
